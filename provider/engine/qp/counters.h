/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The port counters.  Each QP counts packets and bytes in private memory
 * under its lock, and adds them to the shared counters now and then.  What is
 * transmitted inside the fabric is received as well, by the port of
 * qp->count_to.
 */
#pragma once

#include "qp.h"

#define COUNTERS_EVERY 256 /* packets between two flushes */

static inline void counter_add(struct urxe_qp *qp, enum urxe_counter which,
			       uint64_t n)
{
	fetch_add_relaxed(&qp->ctx->hca->counter[which], n);
}

/* The same at the port of the peer. */
static inline void counter_add_peer(struct urxe_qp *qp, enum urxe_counter which,
				    uint64_t n)
{
	fetch_add_relaxed(&qp->count_to->counter[which], n);
}

/* Count an RNR NAK, as received here and as sent by the peer. */
static inline void counter_rnr(struct urxe_qp *qp)
{
	counter_add(qp, URXE_CNT_RNR_NAK, 1);
	counter_add_peer(qp, URXE_CNT_SEND_RNR, 1);
}

/* Add what qp has counted to the port counters; qp->lock is held. */
static inline void counters_flush(struct urxe_qp *qp)
{
	struct urxe_qp_count *c = &qp->count;
	/* all packets go to another host, and are counted on the wire */
	const bool away = qp->wire != NULL;

	if (!c->packets)
		return;
	if (!away && c->packets > c->wire_packets) {
		/* IB 16.1.3.5: data is counted in units of 32 bits */
		counter_add(qp, URXE_CNT_XMIT_DATA,
			    (c->bytes - c->wire_bytes) / 4);
		counter_add_peer(qp, URXE_CNT_RCV_DATA,
				 (c->bytes - c->wire_bytes) / 4);
		counter_add(qp, URXE_CNT_XMIT_PACKETS,
			    c->packets - c->wire_packets);
		counter_add_peer(qp, URXE_CNT_RCV_PACKETS,
				 c->packets - c->wire_packets);
	}
	store_relaxed(&qp->sh->sent_bytes,
		      load_relaxed(&qp->sh->sent_bytes) + c->bytes);
	c->bytes = (c->bytes - c->wire_bytes) % 4;
	c->packets = c->wire_packets = c->wire_bytes = 0;
	store_relaxed(&qp->sh->sq_psn, qp->psn & URXE_PSN_MASK);
}

/* The next packets are received by the port of hca; qp->lock is held. */
static inline void counters_move(struct urxe_qp *qp, struct urxe_hca *hca)
{
	counters_flush(qp);
	qp->count_to = hca;
}
