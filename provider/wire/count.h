/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is counted on the wire: fabric/counter.c has the names. */
#pragma once

#include "fabric/fabric.h"
#include "wire/sender.h"

/* An event of a requester; of who holds the socket. */
static inline void count_request(struct urxe_fabric *f, enum urxe_counter which)
{
	counter_add_wire(f, COUNTER_REQUESTER, which, 1);
}

static inline void count_answer(struct urxe_fabric *f, enum urxe_counter which)
{
	counter_add_wire(f, COUNTER_HOLDER, which, 1);
}

/* What a sender has sent, which is cleared. */
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
