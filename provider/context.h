/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef URXE_CONTEXT_H
#define URXE_CONTEXT_H

#include "urxe.h"

void *urxe_alloc_context(struct ibv_device *device, int cmd_fd, void *priv);
void *urxe_import_context(struct ibv_device *device, int cmd_fd);
void urxe_free_context(struct ibv_context *ibctx);
void urxe_before_fork(void);
void urxe_after_fork(bool child);

/* Number + 1 of the context's async FIFO, 0 if it has none. */
uint32_t urxe_async_fifo(struct urxe_context *ctx);

#endif
