/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counters of the wire.  fabric/counter.c has their names.  Adds are relaxed.
 */
#pragma once

#include "fabric/fabric.h"
#include "wire/sender.h"

/* Count an event of a requester, or (count_answer) of the socket owner. */
static inline void count_request(struct urxe_fabric *f, enum urxe_counter which)
{
	counter_add_wire(f, COUNTER_REQUESTER, which, 1);
}

static inline void count_answer(struct urxe_fabric *f, enum urxe_counter which)
{
	counter_add_wire(f, COUNTER_HOLDER, which, 1);
}

/* Add a sender's packet and byte counts to the counters, and clear them. */
static inline void count_sent(struct urxe_fabric *f, enum counter_side side,
			      struct wire_sent *sent)
{
	if (sent->packets) {
		counter_add_wire(f, side, URXE_CNT_XMIT_PACKETS, sent->packets);
		/* IB 16.1.3.5: data is counted in units of 32 bits */
		counter_add_wire(f, side, URXE_CNT_XMIT_DATA, sent->bytes / 4);
	}
	if (sent->lost)
		counter_add_wire(f, side, URXE_CNT_SEND_ERR, sent->lost);
	*sent = (struct wire_sent){ 0 };
}
