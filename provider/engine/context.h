/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Opening and closing the engine's part of an ibv_context. */
#pragma once

#include "engine/core/context.h"

/*
 * Initialize ctx, which is zeroed, for the open device cmd_fd: map the
 * fabric's memory and the arena.  0 or -errno.
 */
int context_open(struct urxe_context *ctx, struct urxe_fabric *f, int cmd_fd);
void context_close(struct urxe_context *ctx);
/*
 * Add this process to the members of an imported context, before it registers
 * memory there.  0, or -ENOMEM if URXE_MEMBERS processes are members already.
 */
int context_join(struct urxe_context *ctx);
