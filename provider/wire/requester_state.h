/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a requester of the wire knows, and what its parts do for each other:
 *
 *	requester.c		the carrier: begins WRs, looks at the clock
 *	requester_send.c	makes packets of messages
 *	requester_answer.c	takes answers, and tries again
 *
 * qp->lock is held in all of them.
 */
#pragma once

#include "engine/wqe.h"
#include "count.h"
#include "inbox.h"
#include "requester.h"
#include "window.h"

#define FETCHES URXE_MAX_RD_ATOM

/* The WR in a slot; of no packets: one that is carried out, or fails, at this
 * side. */
struct message {
	uint32_t psn, packets;
};

/* A request that waits for data. */
struct fetch {
	uint32_t psn, packets;
};

struct wire_requester {
	const struct urxe_carrier *before; /* what the QP had */
	struct urxe_wire_inbox *inbox;
	int32_t pid; /* whose flight it is */
	uint32_t mask;
	struct wire_window window;
	uint32_t at; /* the slot that window.next is in ... */
	uint32_t end; /* ... and behind the last one that was begun */
	struct fetch fetch[FETCHES]; /* out, from first on */
	uint32_t first, fetches;
	uint64_t fetched; /* bytes that they bring */
	uint64_t deadline; /* of the oldest answer; 0: none is waited for */
	uint64_t rnr_until; /* 0: no */
	uint8_t left, rnr_left; /* tries */
	bool waits; /* and was said to */
	bool gone_back; /* for what una is */
	uint32_t again; /* how often */
	enum ibv_wc_status failed; /* at this side, as it went out: ... */
	uint32_t failed_at; /* ... the WR in this slot, which does no more */
	struct message message[]; /* by slots */
};

static inline struct message *message_at(struct wire_requester *r,
					 uint32_t slot)
{
	return &r->message[slot & r->mask];
}

static inline uint32_t message_end(struct wire_requester *r, uint32_t slot)
{
	const struct message *m = message_at(r, slot);

	return wire_psn_add(m->psn, m->packets);
}

/* Nothing is asked for. */
static inline void fetch_forget(struct wire_requester *r)
{
	r->fetches = 0;
	r->fetched = 0;
}

static inline void counted(const struct urxe_qp *qp, enum urxe_counter which)
{
	count_request(qp->ctx->fabric, which);
}

static inline bool message_is_send(const struct urxe_wqe *w)
{
	return w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM ||
	       w->opcode == IBV_WR_SEND_WITH_INV;
}

/* requester_send.c */

/* Has it something to send, and room for that? */
bool requester_may_send(const struct urxe_qp *qp, struct wire_requester *r);
/* What may go out does; the guard is up. */
void requester_send(struct urxe_qp *qp, struct wire_requester *r);
/* r->at goes over what is out. */
void requester_skip_sent(struct wire_requester *r);
/* How long the oldest answer is waited for before the next try, in ns; 0: for ever. */
uint64_t requester_patience(const struct urxe_qp *qp,
			    const struct wire_requester *r);
/* The clock of the oldest answer; anew: it begins now. */
void requester_arm(const struct urxe_qp *qp, struct wire_requester *r,
		   bool anew);

/* requester_answer.c; the guard is down */

/* The tries of what is oldest now. */
void requester_tries_begin(const struct urxe_qp *qp, struct wire_requester *r);
/* What is out goes out again, because packets were lost; or it was tried often
 * enough, and the QP is broken. */
void requester_try_again(struct urxe_qp *qp, struct wire_requester *r);
/* All answers that are there. */
void requester_take(struct urxe_qp *qp, struct wire_requester *r);
