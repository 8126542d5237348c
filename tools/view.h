/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A view of a fabric that is in use: who has which queues, and how full they
 * are.  All is read with pread(), nothing is written and no lock is taken, so
 * that who looks neither disturbs nor waits; what is read may be half done, and
 * nothing in it is an index before it was bounded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"

/* A process as /proc has it. */
struct view_process {
	int32_t pid;
	char comm[16];
	/* its state there; '-': it is no more, '?': that cannot be told here */
	char state;
};

struct view_ctx {
	uint32_t slot, gen;
	int fd; /* of its arena; -1: it could not be opened */
	bool alive;
	uint64_t pidns;
	struct view_process process; /* the opener */
	uint32_t kept; /* async events that it has to write itself */
	struct urxe_failed failed[URXE_FAILED];
};

/* A completion channel, or the async event file of a context. */
struct view_fifo {
	uint64_t ino;
	uint32_t slot, gen, number;
};

struct view_qp {
	const struct view_ctx *ctx;
	struct view_process process;
	uint32_t qpn;
	struct urxe_qp_sh sh;
	bool inside; /* its requester is at work ... */
	uint32_t turn; /* ... for the time with this number */
	bool away; /* its other end is on another host */
	struct urxe_wire_inbox inbox; /* then */
};

struct view_cq {
	const struct view_ctx *ctx;
	struct view_process process;
	uint32_t index;
	struct urxe_cq_sh sh;
	uint32_t depth, unread;
	uint32_t head; /* position of the first unread one ... */
	struct urxe_cqe first; /* ... and that */
};

struct view_srq {
	const struct view_ctx *ctx;
	uint32_t index;
	struct urxe_srq_sh sh;
};

/* All that its lists point to is there as long as it is. */
struct view {
	uint64_t at; /* clock_now() */
	uint64_t pidns; /* ours */
	struct urxe_dev *dev; /* a copy */
	struct cm cm; /* copies; cm.t is NULL if nobody used it */
	struct view_ctx *ctx;
	struct view_qp *qp;
	struct view_cq *cq;
	struct view_srq *srq;
	struct view_fifo *fifo; /* if a call is in the call table */
	uint32_t ctxs, qps, cqs, srqs, fifos;
	uint16_t qp_at[URXE_MAX_QP]; /* 1 + index in qp, by qpn_index() */
	uint64_t dm_bytes; /* allocated */
	uint32_t dm_pieces;
};

/*
 * The fabric in directory dir, as it is now; NULL: there is none, and that was
 * said, unless `quiet`.
 */
struct view *view_take(const char *dir, bool quiet);
void view_free(struct view *v);

const struct view_qp *view_qp(const struct view *v, uint32_t qpn);
const struct view_cq *view_cq(const struct view *v, const struct view_ctx *c,
			      uint32_t index);
/* Receives posted and not taken, of the QP's queue or its SRQ's. */
uint32_t view_receives(const struct view *v, const struct view_qp *q);
/* Of a process of the fabric by its id; false: none has it now. */
bool view_process_of(const struct view *v, uint32_t id,
		     struct view_process *out);
/* By its number in that PID namespace. */
struct view_process view_process(const struct view *v, int32_t pid,
				 uint64_t pidns, const char *comm);

static inline bool process_is_stopped(const struct view_process *p)
{
	return p->state == 'T' || p->state == 't';
}

static inline uint32_t rq_posted(const struct urxe_rq_sh *rq)
{
	uint32_t n = load_relaxed(&rq->prod) - load_relaxed(&rq->cons);

	return n <= URXE_MAX_QP_WR ? n : 0;
}
