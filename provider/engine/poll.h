/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Polling: the consumer's side of a completion queue. */
#pragma once

#include "cq.h"
#include "idle.h"
#include "retry.h"

/* Completions of a ring that is no more; cq_resize.c. */
struct urxe_backlog {
	uint32_t head, count;
	struct urxe_cqe cqe[];
};

/* Completions that were polled so far; the caller is inside the gate. */
static inline uint32_t cq_polled(const struct urxe_cq *cq)
{
	const struct urxe_backlog *b = cq->backlog;

	return cq->polled_before + cq->head + (b ? b->head : 0);
}
/*
 * The i-th completion that was not polled yet, from 0; NULL if there are not so
 * many.  The caller is inside the gate.
 */
const struct urxe_cqe *poll_peek(const struct urxe_cq *cq, uint32_t i);

/* Do its QPs want attention? */
static inline bool poll_has_progress(const struct urxe_cq *cq)
{
	return load_relaxed(&cq->sh->attention) || load_relaxed(&cq->stalled);
}

/* What a poller does for its QPs before it polls. */
static inline void poll_progress(struct urxe_cq *cq)
{
	if (unlikely(poll_has_progress(cq)))
		retry_progress(cq);
}

/*
 * So many polls in a row found nothing: one looks who claimed the entry at the
 * head, a line that producers write.
 */
#define POLL_LOOKS 64
static_assert(IDLE_POLLS % POLL_LOOKS == 0, "one count for both");

void poll_waits(struct urxe_cq *cq);

/* Who gives way does so before it looks: what it finds is then news. */
static inline void poll_begin(struct urxe_cq *cq)
{
	if (unlikely(load_relaxed(&cq->empty) % POLL_LOOKS == 0))
		poll_waits(cq);
	poll_progress(cq);
}

/*
 * The next completion, if there is one, as a copy: its entry and what its WR
 * held are released, its inline bytes placed.  The caller is inside the gate.
 */
bool poll_take(struct urxe_cq *cq, struct urxe_cqe *copy);

/* The status, of every opcode and for requester and responder alike. */
static inline uint32_t poll_vendor_err(const struct urxe_cqe *e)
{
	return e->status;
}

/*
 * There are no service levels without a VLAN.  Annex A17.4.5.1 has completions
 * of datagrams say which header came; for want of a field NICs say it here:
 * 8 | 1 for IPv6 over UDP, 8 | 2 for IPv4, 0 for RoCE v1.  UCX up to 1.18
 * depends on it.
 */
static inline uint8_t poll_sl(const struct urxe_cqe *e)
{
	if (!(e->wc_flags & IBV_WC_GRH))
		return 0;
	if (e->wc_flags & URXE_CQE_ROCE_V1)
		return 0;
	return e->wc_flags & URXE_CQE_IPV4 ? 8 | 2 : 8 | 1;
}

/* As ibv_poll_cq tells of it. */
static inline void poll_fill_wc(const struct urxe_cqe *e,
				struct ibv_wc *wc)
{
	wc->wr_id = e->wr_id;
	wc->status = e->status;
	wc->opcode = e->opcode;
	wc->vendor_err = poll_vendor_err(e);
	wc->byte_len = e->byte_len;
	wc->imm_data = e->imm;
	wc->qp_num = e->qpn;
	wc->src_qp = e->src_qp;
	wc->wc_flags = e->wc_flags & ~URXE_CQE_OWN_FLAGS;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = poll_sl(e);
	wc->dlid_path_bits = 0;
}

/* The entry at the head of the ring if it is ready, whosoever it is. */
struct urxe_cqe *poll_ring(struct urxe_cq *cq);

/*
 * It goes on somewhere else, to be polled later: what travels in it is placed
 * now, out of the arena.
 */
void poll_leaves_ring(struct urxe_cq *cq, struct urxe_cqe *e);

/* Every completion that was not polled yet; the caller has the gate. */
typedef void poll_each_fn(struct urxe_cqe *e, void *arg);
void poll_each(struct urxe_cq *cq, poll_each_fn *fn, void *arg);

/* The CQ is destroyed: receives that were not polled go back to their SRQs. */
void poll_drop(struct urxe_cq *cq);
/* Forget the completions of a QP that is destroyed or reset. */
void poll_forget_qp(struct urxe_cq *cq, uint32_t qpn);

/* ibv_poll_cq */
int poll_cq(struct urxe_cq *cq, int n, struct ibv_wc *wc);
