/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parked send queues and the IB timers.
 *
 * A WR that cannot go on (the responder has no receive, or does not answer)
 * stays at the head of its SQ.  It is tried again when somebody polls the
 * send CQ, when the peer posts a receive (it wakes our service thread), and
 * when a timer expires; only expiries count against rnr_retry and retry_cnt.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shared/reason.h"

struct urxe_context;
struct urxe_cq;
struct urxe_qp;

enum urxe_stall_kind {
	STALL_NONE,
	STALL_RNR, /* the responder has no receive */
	STALL_TRANSPORT, /* nobody answers */
};

/* A parked send queue.  Times are clock_now()'s. */
struct urxe_stall {
	enum urxe_stall_kind kind;
	uint8_t left; /* retries; 7 with RNR: endless */
	bool endless;
	uint64_t period, deadline; /* 0: never */
	struct urxe_reason why; /* what was noted of it */
};

/* Park qp (its lock held).  False: no retries are allowed, fail at once. */
bool stall_begin(struct urxe_qp *qp, enum urxe_stall_kind kind);
void stall_end(struct urxe_qp *qp);
/*
 * In the child of a fork: what is parked, and queued behind it up to end, is the
 * parent's, who tries it again.
 */
void stall_disown(struct urxe_qp *qp, uint32_t end);

/* What a poller of cq does for its QPs before it looks at the ring. */
void retry_progress(struct urxe_cq *cq);

/*
 * Try every parked SQ of ctx; what the service thread does when it wakes.
 * Returns the next deadline, UINT64_MAX if nothing is parked.
 */
uint64_t retry_all(struct urxe_context *ctx);

/* The responder's RNR timer field to ns; IB specification, table 45. */
uint64_t retry_rnr_ns(uint8_t code);
/* Local ACK timeout: 4.096 us * 2^code in ns; 0 means never. */
uint64_t retry_ack_ns(uint8_t code);
