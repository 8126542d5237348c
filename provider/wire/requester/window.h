/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Send window of a requester: retransmission, with additive increase and
 * multiplicative decrease (AIMD) (IB 9.7.5.1).  These functions neither send
 * nor wait.  The caller holds qp->lock.
 *
 *	una ... next	outstanding: sent and not acknowledged
 *	next ... end	begun and not sent, or to be retransmitted
 *
 * No PSN from `high` on was ever sent; a response to one is not valid.
 *
 * Retransmission: go-back-N repeats all packets from una on.  A responder may
 * instead buffer the packets behind a lost one, as urxe's does
 * (responder/reorder.h), and only the lost one is needed.  The requester finds
 * out: after a sequence NAK it repeats `burst` packets, at first one, and
 * continues at `resume`.  Recovery ends when `recover` is acknowledged:
 *
 *	una after it	the responder		then
 *	before `until`	executes the burst	wait
 *	until		has not buffered the	repeat all, or if it has
 *			next packets, or they	buffered before, a burst
 *			are lost, too		twice as long
 *	later		has buffered packets	wait: a NAK tells what is
 *						missing next
 *
 * After WINDOW_TRIALS recoveries without a sign of a buffer, only go-back-N
 * is used.
 *
 * The window grows by one packet for each window that is acknowledged.  It is
 * halved, once for all packets outstanding at that time, by a CNP, by
 * go-back-N, and if more than WINDOW_LOSSES packets were retransmitted while
 * WINDOW_JUDGED were acknowledged.  Fewer losses are no sign of congestion: a
 * responder that buffers sends CNPs when its socket overflows.
 *
 * AckReq is set often enough that fewer than half of a window of packets
 * follow the last one that has it.  A full window therefore always contains a
 * packet with AckReq, also after the window was halved.
 *
 * Tested by tests/unit/test_window.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/psn.h"

#define WINDOW_FIRST 128u /* rxe's fixed window */
#define WINDOW_MIN 4u
#define WINDOW_MAX 256u
#define WINDOW_ACKREQ 32u /* most packets without AckReq */
#define WINDOW_BURST 64u
#define WINDOW_TRIALS 3u
#define WINDOW_JUDGED 256u /* packets whose losses are compared at once */
#define WINDOW_LOSSES (WINDOW_JUDGED / 3)

struct wire_window {
	uint32_t una, next, high, end; /* PSNs */
	uint32_t size; /* packets */
	uint32_t answered; /* packets acknowledged since it grew last */
	uint32_t judged, resent; /* acknowledged; retransmitted meanwhile */
	uint32_t since_ackreq; /* packets sent since the last AckReq */
	uint32_t cut_at; /* no further cut until this PSN is acknowledged */
	bool cut;
	/* A repetition: next is before `stop`, to be set to `resume` there. */
	uint32_t stop, resume;
	bool repeats;
	bool bursts; /* it is a burst of the recovery */
	bool recovers, nacked; /* in recovery; that a NAK has begun */
	bool buffers; /* the responder was seen to buffer packets */
	uint8_t trials;
	uint32_t until, recover; /* PSNs: end of the last burst, of recovery */
	uint32_t burst; /* packets that are repeated at once */
};

/* Empty the window; the next PSN is psn. */
void window_begin(struct wire_window *w, uint32_t psn);

/* Begin a message of n packets.  Returns its first PSN. */
uint32_t window_extend(struct wire_window *w, uint32_t n);

/* Return the number of packets that may be sent now. */
uint32_t window_room(const struct wire_window *w);

static inline bool window_is_quiet(const struct wire_window *w)
{
	return w->una == w->next;
}

/* Return true if the next packet must have AckReq. */
bool window_needs_ackreq(const struct wire_window *w);

/* Record that n packets were sent; asked: the last one has AckReq. */
void window_sent(struct wire_window *w, uint32_t n, bool asked);

/* Return true if psn was sent and is not acknowledged. */
bool window_has(const struct wire_window *w, uint32_t psn);

/*
 * Acknowledge all PSNs before psn.  Returns false if nothing new is
 * acknowledged, or if psn is beyond `high`.
 */
bool window_answered(struct wire_window *w, uint32_t psn);

/* Return to una for retransmission; lost: because packets were lost. */
void window_go_back(struct wire_window *w, bool lost);

/*
 * Packet una is lost, as a sequence NAK says (@nacked) or a probe is to find
 * out.  Repeat it alone and return true, or go back and return false if the
 * responder is not expected to buffer packets.
 */
bool window_recover(struct wire_window *w, bool nacked);

/*
 * Packets were acknowledged.  Return true if others are repeated to end the
 * recovery; !w->recovers then: all are.
 */
bool window_recover_more(struct wire_window *w);

/*
 * Repeat the packets from PSN `from` up to PSN `to`, which were sent and are
 * not acknowledged, then continue where next is now.  This is no burst of a
 * recovery.
 */
void window_repeat(struct wire_window *w, uint32_t from, uint32_t to);

/* No repetition was of use: go back, and forget what was learned. */
void window_give_up(struct wire_window *w);

/* Halve the window because of congestion (CNP). */
void window_go_slow(struct wire_window *w);
