/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The port's counters.  QPs count for themselves, under their lock, and hand
 * it over now and then.  All QPs of a fabric are behind one port: what goes
 * out comes in.
 */
#pragma once

#include "qp.h"

#define COUNTERS_EVERY 256 /* packets */

static inline void counter_add(struct urxe_qp *qp, enum urxe_counter which,
			       uint64_t n)
{
	fetch_add_relaxed(&qp->ctx->fabric->dev->counter[which], n);
}

/* Hand over what qp has counted; its lock is held. */
static inline void counters_flush(struct urxe_qp *qp)
{
	struct urxe_qp_count *c = &qp->count;

	if (!c->packets)
		return;
	/* IB 16.1.3.5: data is counted in units of 32 bits */
	counter_add(qp, URXE_CNT_XMIT_DATA, c->bytes / 4);
	counter_add(qp, URXE_CNT_RCV_DATA, c->bytes / 4);
	counter_add(qp, URXE_CNT_XMIT_PACKETS, c->packets);
	counter_add(qp, URXE_CNT_RCV_PACKETS, c->packets);
	store_relaxed(&qp->sh->sent_bytes,
		      load_relaxed(&qp->sh->sent_bytes) + c->bytes);
	c->bytes %= 4;
	c->packets = 0;
	store_relaxed(&qp->sh->sq_psn, qp->psn & URXE_PSN_MASK);
}
