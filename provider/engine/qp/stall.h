/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parked send queues.
 *
 * A WR that cannot be executed now (the responder has no receive, or does not
 * respond) stays at the head of its SQ, which is parked.  It is retried when
 * the send CQ is polled, when the peer posts a receive (which wakes the
 * requester's service thread), and when a timer expires (exec/retry.h).  Only
 * an expired timer counts against rnr_retry and retry_cnt.  In identifiers
 * parking is called a stall (struct urxe_stall).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shared/reason.h"

struct urxe_qp;

enum urxe_stall_kind {
	STALL_NONE,
	STALL_RNR, /* the responder has no receive */
	STALL_TRANSPORT, /* the responder does not respond */
};

/* State of a parked send queue.  Times are ns of clock_now(). */
struct urxe_stall {
	enum urxe_stall_kind kind;
	uint8_t left; /* retries left */
	bool endless; /* rnr_retry is 7, or timeout is 0 */
	uint64_t period, deadline; /* 0: never */
	struct urxe_reason why; /* reason of the last failed try */
};

/*
 * Park the queue of qp, or keep it parked.  False if no retries are allowed
 * (rnr_retry is 0): the WR fails at once.  qp->lock is held.
 */
bool stall_begin(struct urxe_qp *qp, enum urxe_stall_kind kind);
/* Unpark it.  qp->lock is held. */
void stall_end(struct urxe_qp *qp);
/*
 * In the child of a fork: drop the parked WR and those queued behind it up to
 * end.  The parent retries them.
 */
void stall_disown(struct urxe_qp *qp, uint32_t end);

/* Convert a min_rnr_timer code to ns; IB specification, table 45. */
uint64_t retry_rnr_ns(uint8_t code);
/* Convert a Local ACK Timeout code to ns: 4.096 us * 2^code; 0: never. */
uint64_t retry_ack_ns(uint8_t code);
