/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who reads the fabric's socket: one process of all that have the device open
 * with a wire.  Each context has a thread that waits to be the one.  Its id in
 * dev->wire.holder says who it is; an id of the dead, or none, may be replaced,
 * and the kernel wakes those who wait when its process ends.  So nobody is lost
 * with it but packets, which their senders send once more: what has to be known
 * of a connection is in shared memory (shared/wire.h).
 *
 * They look ten times a second whether it is stopped, where that can be seen (in
 * the same PID namespace), and replace it as well.  It has its socket still, but
 * what comes goes to the one that was bound last; and it finds that it holds no
 * more before it does anything (seat.h), and closes it.
 *
 * The socket may be bound a moment longer than its process lives, and by others
 * than this fabric: then it is tried again.
 */
#pragma once

#include "engine/context.h"

/* Have a thread for ctx, which is to hold the socket of that address. */
void holder_start(struct urxe_context *ctx, const uint8_t gid[16]);
/* It ends; another one may hold it.  Nothing, if there is none. */
void holder_stop(struct urxe_context *ctx);
/* In the child of a fork: it is the parent's. */
void holder_after_fork(struct urxe_context *ctx);
