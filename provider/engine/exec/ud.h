/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Unreliable datagrams: the requester's and the responder's part of a SEND on
 * a UD QP, unicast or multicast.  Called by execute() with qp->lock held and
 * the guard raised.
 */
#pragma once

#include "engine/qp/qp.h"
#include "responder.h"

/* The Q_Key to send: the QP's own if the high bit is set (IB 10.2.5). */
static inline uint32_t ud_qkey(const struct urxe_qp *qp,
			       const struct urxe_wqe *w)
{
	return w->ud.qkey & 0x80000000 ? qp->attr.qkey : w->ud.qkey;
}

/*
 * Fill the first 20 bytes of @grh, which are undefined before an IPv4 header
 * or without a GRH, with seeded random bytes, if the adversary requires that
 * (ctx->grh_noise).
 */
void ud_spoil_grh(const struct urxe_context *ctx, uint8_t grh[GRH_BYTES]);

/*
 * Send a datagram to each destination that accepts it.  The message is in
 * src[1] and up; src[0] is filled with the GRH.  There is no response.  The
 * receipt of the last destination is left in *rc; the caller publishes it if
 * rc->conn is set.
 */
void ud_send(struct urxe_qp *qp, const struct urxe_wqe *w, struct urxe_seg *src,
	     struct receipt *rc);
