/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A view: a copy of the state of a fabric that is in use, for urxe why and
 * urxe top. It has the processes, contexts, queues and their fill levels, and
 * the tables of the connection manager.
 *
 * Everything is read with pread(2). Nothing is written and no lock is taken,
 * so a view neither disturbs the processes of the fabric nor waits for them.
 * The copy is not a consistent snapshot, because objects change while they
 * are copied. So each value is bounded before it is used as an index.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"

/* A process, from /proc. */
struct view_process {
	int32_t pid;
	char comm[16];
	/*
	 * state as in /proc/PID/stat; '-': it does not exist any more, or is
	 * a zombie; '?': unknown, as it is in another PID namespace
	 */
	char state;
};

struct view_ctx {
	uint32_t slot, gen;
	int fd; /* file of its arena; -1: could not be opened */
	bool alive;
	uint64_t pidns;
	struct view_process process; /* process that opened the device */
	/* async events that its process still has to write to the channel */
	uint32_t kept;
	struct urxe_failed failed[URXE_FAILED];
};

/* FIFO of a completion channel, or of the async events of a context. */
struct view_fifo {
	uint64_t ino;
	uint32_t slot, gen, number;
};

#define VIEW_ON 72 /* size of view_qp_on() */

struct view_qp {
	const struct view_ctx *ctx;
	struct view_process process;
	uint32_t qpn;
	struct urxe_qp_sh sh;
	bool inside; /* the requester's guard is raised */
	uint32_t turn; /* sequence number of the guard: odd while raised */
	bool is_remote; /* the peer is on another host */
	struct urxe_wire_inbox inbox; /* inbox of the QP, if `is_remote` */
};

struct view_cq {
	const struct view_ctx *ctx;
	struct view_process process;
	uint32_t index;
	struct urxe_cq_sh sh;
	uint32_t depth, unread;
	uint32_t head; /* position of the first unpolled CQE */
	struct urxe_cqe first; /* that CQE, if `unread` is not 0 */
};

struct view_srq {
	const struct view_ctx *ctx;
	uint32_t index;
	struct urxe_srq_sh sh;
};

/*
 * A view. The objects in its lists point to each other and are valid until
 * view_free().
 */
struct view {
	uint64_t at; /* clock_now() */
	uint64_t pidns; /* PID namespace of this process */
	struct urxe_dev *dev; /* copy of the shared device */
	/* copies of the tables; cm.t is NULL if rdma_cm is not used */
	struct cm cm;
	struct view_ctx *ctx;
	struct view_qp *qp;
	struct view_cq *cq;
	struct view_srq *srq;
	struct view_fifo *fifo; /* read only if the call table is not empty */
	uint32_t ctxs, qps, cqs, srqs, fifos;
	uint16_t qp_at[URXE_MAX_QP]; /* 1 + index in qp, by qpn_index() */
	uint64_t dm_bytes; /* bytes of device memory allocated */
	uint32_t dm_pieces;
};

/*
 * Copy the state of the fabric in directory @dir. Return NULL if there is
 * none, if its layout is of another version, or if there is no memory; this
 * is logged unless @quiet.
 */
struct view *view_take(const char *dir, bool quiet);
void view_free(struct view *v);

const struct view_qp *view_qp(const struct view *v, uint32_t qpn);
/*
 * Set @on to " at " and the name of the device of a QP, or to "" if the fabric
 * has one device, or not this QP.
 */
void view_qp_on(const struct view *v, uint32_t qpn, char on[VIEW_ON]);
/* The device of a QP. */
static inline struct urxe_hca *view_hca(const struct view *v,
					const struct view_qp *q)
{
	return hca_of_ctx(v->dev, q->ctx->slot);
}

const struct view_cq *view_cq(const struct view *v, const struct view_ctx *c,
			      uint32_t index);
/*
 * Number of receives posted and not consumed, in the QP's receive queue or
 * its SRQ.
 */
uint32_t view_receives(const struct view *v, const struct view_qp *q);
/*
 * Get the process with that id in the fabric. Return false if no process has
 * the id now.
 */
bool view_process_of(const struct view *v, uint32_t id,
		     struct view_process *out);
/*
 * Get the process with that PID in PID namespace @pidns (0: this one). @comm
 * is its name if /proc cannot be read.
 */
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
