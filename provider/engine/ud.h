/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Datagrams. */
#pragma once

#include "qp.h"
#include "responder.h"

/* IB 10.2.5: with the high bit set the QP's own Q_Key is sent. */
static inline uint32_t ud_qkey(const struct urxe_qp *qp,
			       const struct urxe_wqe *w)
{
	return w->ud.qkey & 0x80000000 ? qp->attr.qkey : w->ud.qkey;
}

/*
 * Put noise into the bytes of @grh in front of an IPv4 header, which are
 * undefined, if the adversary wants that.
 */
void ud_spoil_grh(const struct urxe_context *ctx, uint8_t grh[GRH_BYTES]);

/*
 * Send a datagram: src[0] is free for the GRH, the message follows in
 * src[1..].  Nobody answers.  What the last one got is left in *rc, to be
 * published.
 */
void ud_send(struct urxe_qp *qp, const struct urxe_wqe *w, struct urxe_seg *src,
	     struct receipt *rc);
