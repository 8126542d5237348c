// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Polling: the consumer's side of a completion queue. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "conn.h"
#include "context.h"
#include "cq.h"
#include "log.h"
#include "mem.h"
#include "poll.h"
#include "retry.h"
#include "qp.h"
#include "rq.h"
#include "srq.h"
#include "transfer.h"
#include "why.h"

/* How long until a claimed entry's owner is asked again whether it lives. */
#define STUCK_NS 1000000ull

/*
 * A small message travelled in the completion: its bytes are put where they
 * belong by the poller.  The program may have unmapped that memory meanwhile,
 * so the kernel copies, out of the arena's file: a page that is missing is an
 * error then and not a signal.  It is not called by libc's pread, which is a
 * cancellation point: a thread that ended in there would leave the CQ locked.
 */
static bool poll_place_run(struct urxe_context *ctx, const struct urxe_key *k,
			   uint64_t addr, const uint8_t *data, uint32_t n)
{
	struct urxe_seg dst, src = { .ptr = (char *)(uintptr_t)data,
				     .len = n };
	int saved = errno;
	long ret;

	if (!mem_is_mine(ctx->self, k) || k->kind == URXE_MEM_DM ||
	    k->kind == URXE_MEM_NULL) {
		mem_reach(ctx->self, k, addr, n, &dst);
		/* we have no guard up: our mapping may end at any time */
		if (k->kind == URXE_MEM_FILE)
			dst.ptr = NULL;
		return transfer(&dst, &src, n, ctx, true) == TRANSFER_OK;
	}
	do {
		ret = syscall(SYS_pread64, ctx->cmd_fd,
			      k->va + (addr - k->iova), (size_t)n,
			      (const char *)data - (const char *)ctx->arena);
	} while (ret < 0 && errno == EINTR);
	errno = saved;
	return ret == (long)n;
}

/* False: a key does not hold any more, or its memory is not there. */
static bool poll_place_inline(struct urxe_context *ctx, uint32_t pd,
			      const struct urxe_recv *r, uint32_t max_sge,
			      const struct urxe_cqe *e)
{
	uint32_t i, n, left = e->inline_len & ~URXE_CQE_SRQ;
	uint32_t num_sge = load_relaxed(&r->num_sge); /* once: it is shared */
	const uint8_t *data = e->data;
	const struct urxe_key *k;
	struct urxe_sge sge;

	if (left > sizeof(e->data))
		left = sizeof(e->data);
	for (i = 0; left && i < num_sge && i < max_sge; i++) {
		sge = recv_sge(&r->sge[i]);
		n = sge.length < left ? sge.length : left;
		if (!n)
			continue;
		k = mem_lookup(ctx->self, sge.lkey, pd, sge.addr, n,
			       IBV_ACCESS_LOCAL_WRITE);
		if (!k || !poll_place_run(ctx, k, sge.addr, data, n)) {
			if (k)
				why_note(MEMORY, k->pid, sge.addr);
			else
				why_note(KEY_LATE, e->qpn);
			return false;
		}
		data += n;
		left -= n;
	}
	return true;
}

/* As if the responder had found it when the message came. */
static void poll_fail_receive(struct urxe_context *ctx, struct urxe_cqe *e)
{
	e->status = IBV_WC_LOC_PROT_ERR;
	e->byte_len = 0;
	e->wc_flags = 0;
	conn_break_qpn(ctx->fabric, e->qpn);
}

/* Once: an entry may be settled before it is polled. */
static void poll_place(struct urxe_context *ctx, uint32_t pd,
		       const struct urxe_recv *r, uint32_t max_sge,
		       struct urxe_cqe *e)
{
	if (likely(!(e->inline_len & ~URXE_CQE_SRQ)))
		return;
	if (unlikely(!poll_place_inline(ctx, pd, r, max_sge, e)))
		poll_fail_receive(ctx, e);
	e->inline_len &= URXE_CQE_SRQ;
}

/*
 * The place in a queue that a completion releases: kept, or tail goes on to
 * end; neither, if its QP was destroyed.  It is released after the completion's
 * entry: what is posted there next finds room for its completion in a CQ that
 * is just large enough.
 */
struct place {
	_Atomic uint32_t *tail;
	uint32_t end;
	struct urxe_kept *kept;
	struct urxe_rq *rq; /* of kept */
};

/* A receive that several could have taken comes back. */
static void poll_settle_kept(struct urxe_context *ctx, struct urxe_rq *rq,
			     uint32_t pd, uint32_t ticket,
			     struct urxe_cqe *e, struct place *p)
{
	p->rq = rq;
	p->kept = rq_kept(rq, ticket);
	if (p->kept)
		poll_place(ctx, pd, kept_recv(p->kept), rq->max_sge, e);
}

/* A completion of a receive from an SRQ. */
static bool __attribute__((noinline))
poll_settle_srq(struct urxe_cq *cq, struct urxe_cqe *e, struct place *p)
{
	struct urxe_srq *srq = context_srq(cq->ctx, URXE_WQE_INDEX(e->wqe));

	if (unlikely(!srq))
		return false;
	poll_settle_kept(cq->ctx, &srq->rq, srq->sh->pd,
			 URXE_WQE_TICKET(e->wqe), e, p);
	/* the target QP of XRC may be another process's */
	return srq->cq || (e->qpn && context_qp(cq->ctx, e->qpn));
}

/* Releases up to p->end, unless that is further than the queue can be. */
static inline void poll_settle_tail(struct place *p, _Atomic uint32_t *tail,
				    uint32_t mask)
{
	if (likely(p->end - load_relaxed(tail) - 1 <= mask))
		p->tail = tail;
}

/* Find the entry's place, its bytes brought there; false: QP destroyed. */
static inline bool __attribute__((always_inline))
poll_settle(struct urxe_cq *cq, struct urxe_cqe *e, struct place *p)
{
	struct urxe_qp *qp;

	p->tail = NULL;
	p->kept = NULL;
	if (e->inline_len & URXE_CQE_SRQ)
		return poll_settle_srq(cq, e, p);
	qp = context_qp(cq->ctx, e->qpn);
	if (unlikely(!qp || qp->qpn != e->qpn))
		return false;
	p->end = e->wqe + 1;
	if (e->opcode & IBV_WC_RECV && unlikely(!qp->rq.ring))
		return true; /* none of ours wrote this */
	if (e->opcode & IBV_WC_RECV && rq_kept_set(&qp->rq)) {
		poll_settle_kept(cq->ctx, &qp->rq, qp->sh->pd, e->wqe, e, p);
	} else if (e->opcode & IBV_WC_RECV) {
		poll_place(qp->ctx, qp->sh->pd, rq_slot(&qp->rq, e->wqe),
			   qp->rq.max_sge, e);
		poll_settle_tail(p, &qp->rq.tail, qp->rq.mask);
	} else {
		poll_settle_tail(p, &qp->sq.tail, qp->sq.mask);
	}
	return true;
}

/* Has a forked process polled it? */
static inline bool poll_is_ours(const struct urxe_cq *cq)
{
	return likely(load_relaxed(cq->ring.head) == cq->head);
}

/*
 * Words at the head that the protocol does not leave there.  head is further
 * than ours, and others have taken the slot since, only where a forked process
 * polls, too (acquire: whose fork we know of then).
 */
static bool poll_is_damaged(const struct urxe_cq *cq, uint64_t claim)
{
	const struct cq_ring *r = &cq->ring;
	uint64_t word = load_relaxed(&r->entry[cq->head & r->mask].word);
	uint32_t told = load_acquire(r->head);

	if ((cqe_pos(claim) - cq->head) & r->mask ||
	    (cqe_pos(word) - cq->head) & r->mask ||
	    cqe_state(word) != CQE_READY ||
	    (cqe_state(claim) != CQE_CLAIMED &&
	     cqe_state(claim) != CQE_MOVED) ||
	    (int32_t)(told - cq->head) < 0)
		return true;
	return !load_relaxed(&cq->forked) &&
	       (told != cq->head || (int32_t)(cqe_pos(claim) - cq->head) > 0);
}

/*
 * The entry at the head is not ready.  True if it was left out because the
 * producer that claimed it is dead.
 */
static bool __attribute__((cold, noinline))
poll_skip_dead(struct urxe_cq *cq)
{
	const struct cq_ring *r = &cq->ring;
	const uint64_t claim = load_acquire(&r->claim[cq->head & r->mask]);
	const uint32_t owner = cqe_owner(claim);
	uint64_t now;

	store_relaxed(&cq->closely, false);
	if (!cq_ring_is_claimed(claim, cq->head) || !poll_is_ours(cq)) {
		if (unlikely(poll_is_damaged(cq, claim)))
			cq_break(&cq->view, "its ring is damaged");
		return false;
	}
	/* by the clock: a program may poll as seldom as it likes */
	now = clock_now();
	if (now < cq->ask_at)
		return false;
	if (!owner || !process_brief_is_dead(cq->ctx->fabric, owner)) {
		cq->ask_at = now + STUCK_NS;
		return false;
	}
	/* who learnt of its death sees all that it did */
	if (cq_ring_is_ready(&r->entry[cq->head & r->mask], cq->head))
		return true;
	urxe_note("a producer died while it completed: entry %u skipped",
		  cq->head);
	cq_ring_release(r, ++cq->head);
	store_relaxed(&cq->closely, true); /* who claimed the next one? */
	return true;
}

static inline struct urxe_cqe *poll_ring_next(struct urxe_cq *cq)
{
	struct urxe_cqe *e;

	do {
		e = &cq->ring.entry[cq->head & cq->ring.mask];
		if (likely(cq_ring_is_ready(e, cq->head)) && poll_is_ours(cq))
			return e;
	} while (unlikely(load_relaxed(&cq->closely)) && poll_skip_dead(cq));
	return NULL;
}

struct urxe_cqe *poll_ring(struct urxe_cq *cq)
{
	return poll_ring_next(cq);
}

const struct urxe_cqe *poll_peek(const struct urxe_cq *cq, uint32_t i)
{
	const struct urxe_backlog *b = cq->backlog;
	uint32_t left = b ? b->count - b->head : 0, pos;
	const struct urxe_cqe *e;

	if (i < left)
		return &b->cqe[b->head + i];
	if (i - left > cq->ring.mask)
		return NULL;
	pos = cq->head + i - left;
	e = &cq->ring.entry[pos & cq->ring.mask];
	return cq_ring_is_ready(e, pos) && poll_is_ours(cq) ? e : NULL;
}

/* Done with an entry, and with what its WR held. */
static inline void poll_release(struct urxe_cq *cq, const struct place *p)
{
	struct urxe_backlog *b = cq->backlog;

	if (likely(!b)) {
		cq_ring_release(&cq->ring, ++cq->head);
	} else if (++b->head == b->count) {
		cq->polled_before += b->count;
		cq->backlog = NULL;
		free(b);
	}
	if (likely(p->tail != NULL))
		store_release(p->tail, p->end);
	else if (p->kept)
		rq_release(p->rq, p->kept);
}

/*
 * The next completion; the caller is inside the gate, reads the entry and
 * releases it.  NULL: there is none.
 */
static inline struct urxe_cqe *poll_next(struct urxe_cq *cq, struct place *p)
{
	struct urxe_cqe *e;

	for (;;) {
		/* what a resize took out of the old ring comes first */
		e = unlikely(cq->backlog != NULL) ?
			    &cq->backlog->cqe[cq->backlog->head] :
			    poll_ring_next(cq);
		if (!e || likely(poll_settle(cq, e, p)))
			return e;
		poll_release(cq, p);
	}
}

void poll_leaves_ring(struct urxe_cq *cq, struct urxe_cqe *e)
{
	struct place p;

	poll_settle(cq, e, &p);
}

bool poll_take(struct urxe_cq *cq, struct urxe_cqe *copy)
{
	struct place p;
	struct urxe_cqe *e = poll_next(cq, &p);

	if (!e)
		return false;
	memcpy(copy, e, sizeof(*copy));
	poll_release(cq, &p);
	return true;
}

/*
 * Nothing travels in most completions, and none is of an SRQ: such a one is at the
 * head of the ring, is ready, and is polled here.
 */
static inline bool __attribute__((always_inline))
poll_plain(struct urxe_cq *cq, const struct urxe_cqe *e, struct ibv_wc *wc)
{
	_Atomic uint32_t *tail;
	uint32_t qpn, end, mask;
	struct urxe_qp *qp;

	if (unlikely(cq->backlog || !poll_is_ours(cq) || e->inline_len))
		return false;
	qpn = e->qpn;
	qp = context_qp(cq->ctx, qpn);
	if (unlikely(!qp || qp->qpn != qpn))
		return false;
	poll_fill_wc(e, wc);
	end = e->wqe + 1;
	tail = &qp->sq.tail;
	mask = qp->sq.mask;
	if (e->opcode & IBV_WC_RECV) {
		if (unlikely(!qp->rq.ring || rq_kept_set(&qp->rq)))
			return false;
		tail = &qp->rq.tail;
		mask = qp->rq.mask;
	}
	cq_ring_release(&cq->ring, ++cq->head);
	/* unless that is further than the queue can be */
	if (likely(end - load_relaxed(tail) - 1 <= mask))
		store_release(tail, end);
	return true;
}

static bool __attribute__((noinline))
poll_other(struct urxe_cq *cq, struct ibv_wc *wc)
{
	struct place p;
	struct urxe_cqe *e = poll_next(cq, &p);

	if (!e)
		return false;
	poll_fill_wc(e, wc);
	poll_release(cq, &p);
	return true;
}

static int __attribute__((cold, noinline)) poll_wake(struct urxe_cq *cq)
{
	mutex_wake(&cq->lock);
	return 0;
}

static inline const struct urxe_cqe *poll_head(const struct urxe_cq *cq)
{
	return &cq->ring.entry[cq->head & cq->ring.mask];
}

/* The caller has entered. */
static inline int poll_leave(struct urxe_cq *cq, int got)
{
	gate_leave(&cq->gate);
	cq_note_poll(cq, got);
	if (unlikely(!cq->quick))
		cq_unlock(cq);
	else if (mutex_unlock_cheap(&cq->lock))
		poll_wake(cq);
	return got;
}

/* What is there, up to n, of which `got` were polled; the caller has entered. */
static int __attribute__((noinline))
poll_some(struct urxe_cq *cq, int n, struct ibv_wc *wc, int got)
{
	while (got < n && poll_other(cq, &wc[got]))
		got++;
	return poll_leave(cq, got);
}

/* The same where e, at the head, is ready. */
static int __attribute__((noinline))
poll_ready(struct urxe_cq *cq, int n, struct ibv_wc *wc,
	   const struct urxe_cqe *e)
{
	int got = 0;

	if (unlikely(n <= 0))
		return poll_leave(cq, 0);
	do {
		if (unlikely(!poll_plain(cq, e, &wc[got])))
			return poll_some(cq, n, wc, got);
		if (++got == n)
			break;
		e = poll_head(cq);
	} while (cq_ring_is_ready(e, cq->head));
	return poll_leave(cq, got);
}

void poll_waits(struct urxe_cq *cq)
{
	store_relaxed(&cq->closely, true);
	if (load_relaxed(&cq->empty) < IDLE_POLLS)
		return;
	store_relaxed(&cq->empty, 0);
	idle_give_way();
}

/* As poll_cq() does, where there is more to be done or others are in. */
static int __attribute__((noinline))
poll_late(struct urxe_cq *cq, int n, struct ibv_wc *wc)
{
	poll_begin(cq);
	cq_lock(cq);
	gate_enter(&cq->gate);
	return poll_some(cq, n, wc, 0);
}

/* An outsider has the gate, who does not wait for the lock. */
static int __attribute__((cold, noinline))
poll_after_outsider(struct urxe_cq *cq, int n, struct ibv_wc *wc)
{
	gate_enter_slow(&cq->gate);
	return poll_some(cq, n, wc, 0);
}

/*
 * Of an empty CQ this is all that there is, so nothing is called in it but in
 * its place: there are no registers to save.
 */
static inline int __attribute__((always_inline))
poll_quick(struct urxe_cq *cq, int n, struct ibv_wc *wc, bool locks)
{
	const uint32_t empty = load_relaxed(&cq->empty);
	const struct urxe_cqe *e;
	uint32_t head, seq;

	if (unlikely(empty % POLL_LOOKS == 0 ||
		     poll_has_progress(cq)) ||
	    unlikely(locks && !mutex_trylock(&cq->lock)))
		return poll_late(cq, n, wc);
	seq = presence_enter_cheap(&cq->gate.insider);
	if (unlikely(load_acquire(&cq->gate.claimed)))
		return poll_after_outsider(cq, n, wc);
	head = cq->head;
	e = &cq->ring.entry[head & cq->ring.mask];
	if (cq_ring_is_ready(e, head))
		return poll_ready(cq, n, wc, e);
	if (unlikely(load_relaxed(&cq->closely)))
		return poll_some(cq, n, wc, 0);
	presence_leave_at(&cq->gate.insider, seq);
	store_relaxed(&cq->empty, empty + 1);
	if (locks && mutex_unlock_cheap(&cq->lock))
		return poll_wake(cq);
	return 0;
}

/* The gate is all that there is, or it is not cheap. */
static int __attribute__((noinline))
poll_alone(struct urxe_cq *cq, int n, struct ibv_wc *wc)
{
	return likely(presence_cheap && cq->single_threaded) ?
		       poll_quick(cq, n, wc, false) :
		       poll_late(cq, n, wc);
}

int poll_cq(struct urxe_cq *cq, int n, struct ibv_wc *wc)
{
	return likely(cq->quick) ? poll_quick(cq, n, wc, true) :
				   poll_alone(cq, n, wc);
}

void poll_each(struct urxe_cq *cq, poll_each_fn *fn, void *arg)
{
	struct urxe_backlog *b = cq->backlog;
	struct urxe_cqe *e;
	uint64_t word;
	uint32_t i;

	for (i = b ? b->head : 0; b && i < b->count; i++)
		fn(&b->cqe[i], arg);
	for (i = cq->head; i - cq->head <= cq->ring.mask; i++) {
		e = &cq->ring.entry[i & cq->ring.mask];
		word = load_acquire(&cq->ring.claim[i & cq->ring.mask]);
		if (cq_ring_is_ready(e, i))
			fn(e, arg);
		else if (!cq_ring_is_claimed(word, i))
			break;
	}
}

void poll_drop(struct urxe_cq *cq)
{
	struct place p;

	if (!gate_trylock(&cq->gate))
		return;
	while (poll_next(cq, &p))
		poll_release(cq, &p);
	gate_unlock(&cq->gate);
}

/* Nobody's: polling drops it. */
static void poll_forget(struct urxe_cqe *e, void *arg)
{
	if (e->qpn == *(uint32_t *)arg)
		e->qpn = 0;
}

void poll_forget_qp(struct urxe_cq *cq, uint32_t qpn)
{
	gate_lock(&cq->gate);
	poll_each(cq, poll_forget, &qpn);
	gate_unlock(&cq->gate);
}
