/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The completer: processes the responses of READs in the thread that has
 * received them, without the inbox, if the QP is one of the socket owner's own
 * context.  This saves a copy of the data, and the wake-up of a thread.
 *
 * The socket owner, or a poller that receives for it, enters the QP at the
 * first response and leaves it at the first other packet, at the latest at
 * the end of the batch.  If the QP's lock or that of the context is taken, or
 * if a WR is not begun yet, such as one with a fence, the response goes into
 * the inbox.  Other responses always do: an ACK makes the requester send data,
 * which is the work of the threads that post and poll.
 */
#pragma once

#include "engine/qp/qp.h"
#include "wire/socket/inbox.h"

struct completer {
	struct inbox_bypass bypass; /* first: completer_begin() sets it */
	struct urxe_context *ctx;
	struct urxe_qp *qp; /* pinned, its lock is held; NULL: none */
};

void completer_begin(struct completer *c, struct urxe_context *ctx);
