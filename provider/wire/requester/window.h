/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Send window of a requester: go-back-N with additive increase and
 * multiplicative decrease (AIMD) (IB 9.7.5.1).  These functions neither send
 * nor wait.  The caller holds qp->lock.
 *
 *	una ... next	outstanding: sent and not acknowledged
 *	next ... end	begun and not sent, or to be retransmitted
 *
 * No PSN from `high` on was ever sent; a response to one is not valid.
 *
 * The window grows by one packet for each window that is acknowledged.  A
 * loss halves it, once for all packets outstanding at that time.
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

struct wire_window {
	uint32_t una, next, high, end; /* PSNs */
	uint32_t size; /* packets */
	uint32_t answered; /* packets acknowledged since it grew last */
	uint32_t since_ackreq; /* packets sent since the last AckReq */
	uint32_t cut_at; /* no further cut until this PSN is acknowledged */
	bool cut;
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

/* Halve the window because of congestion (CNP). */
void window_go_slow(struct wire_window *w);
