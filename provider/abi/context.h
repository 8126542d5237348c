/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef URXE_CONTEXT_H
#define URXE_CONTEXT_H

#include "engine/urxe.h"

void *urxe_alloc_context(struct ibv_device *device, int cmd_fd, void *priv);
void *urxe_import_context(struct ibv_device *device, int cmd_fd);
void urxe_free_context(struct ibv_context *ibctx);
void urxe_before_fork(void);
void urxe_after_fork(bool child);

/* Number + 1 of the context's async FIFO, 0 if it has none. */
uint32_t urxe_async_fifo(struct urxe_context *ctx);

/* NULL: there is none any more. */
static inline struct urxe_qp *context_qp(const struct urxe_context *ctx,
					 uint32_t qpn)
{
	return atomic_load_explicit(&ctx->qp[qpn_index(qpn)],
				    memory_order_acquire);
}

static inline struct urxe_srq *context_srq(const struct urxe_context *ctx,
					   uint32_t index)
{
	return atomic_load_explicit(&ctx->srq[index], memory_order_acquire);
}

#endif
