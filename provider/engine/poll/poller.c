// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Polling: the consumer side of a completion queue. The ring protocol is in
 * shared/cq_ring.h.
 *
 * poll_cq() implements ibv_poll_cq(). One thread at a time consumes: it holds
 * cq->lock, unless the CQ is single-threaded, and is inside cq->gate
 * (lock.h). Other threads of this process that read the ring, for example
 * to destroy a QP, take the gate.
 *
 * For each completion the poller copies the bytes that it carries (eager.h) to
 * the receive buffer, releases the CQ entry and then releases the slots of the
 * send or receive queue. An entry that a dead producer claimed and did not fill
 * is skipped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/qp/conn.h"
#include "engine/core/context.h"
#include "engine/cq/cq.h"
#include "engine/cq/eager.h"
#include "engine/core/log.h"
#include "engine/mem/mem.h"
#include "poller.h"
#include "engine/exec/retry.h"
#include "engine/qp/qp.h"
#include "engine/qp/rq.h"
#include "engine/qp/srq.h"
#include "engine/copy/transfer.h"
#include "engine/qp/why.h"

/*
 * Interval in ns between checks whether the process that claimed the entry at
 * the head is alive.
 */
#define STUCK_NS 1000000ull

/*
 * Copy inline data to memory of this process by the kernel, from the arena's
 * file: a missing page then is an error, also where nofault.h has no signal
 * handler. The system call is made directly because libc's pread() is a
 * cancellation point, and a thread cancelled there would leave the CQ locked.
 */
static bool __attribute__((cold, noinline))
poll_place_by_kernel(struct urxe_context *ctx, uint64_t va, const uint8_t *data,
		     uint32_t n)
{
	int saved = errno;
	long ret;

	do {
		ret = syscall(SYS_pread64, ctx->cmd_fd, va, (size_t)n,
			      (const char *)data - (const char *)ctx->arena);
	} while (ret < 0 && errno == EINTR);
	errno = saved;
	return ret == (long)n;
}

/*
 * Copy the inline data of a completion to the receive buffer, which the
 * program may have unmapped.
 */
static bool poll_place_run(struct urxe_context *ctx, const struct urxe_key *k,
			   uint64_t addr, const uint8_t *data, uint32_t n)
{
	struct urxe_seg dst, src = { .ptr = (char *)(uintptr_t)data, .len = n };
	const uint64_t va = k->va + (addr - k->iova);

	if (mem_is_mine(ctx->self, k) && k->kind != URXE_MEM_DM &&
	    k->kind != URXE_MEM_NULL)
		return likely(nofault_is_safe()) ?
			       likely(transfer_local_known(
				       (char *)(uintptr_t)va, src.ptr, n,
				       true)) :
			       poll_place_by_kernel(ctx, va, data, n);
	mem_reach(ctx->self, k, addr, n, &dst);
	/* no guard is raised here: a file may be unmapped at any time */
	if (k->kind == URXE_MEM_FILE)
		dst.ptr = NULL;
	return transfer(&dst, &src, n, ctx, true) == TRANSFER_OK;
}

/*
 * Find the bytes that @e, at the head of the ring, carries, and their number.
 * NULL: @e is damaged.
 */
static inline const uint8_t *poll_data(struct urxe_cq *cq,
				       const struct urxe_cqe *e, uint32_t *len)
{
	*len = e->inline_len & ~URXE_CQE_SRQ;
	if (*len != URXE_CQE_EAGER)
		return *len <= URXE_CQE_INLINE ? e->data : NULL;
	*len = e->byte_len;
	return *len <= URXE_EAGER_BYTES ?
		       (const uint8_t *)eager_read(cq, cq->head) :
		       NULL;
}

/*
 * Place the bytes that @e carries. Return false if an lkey is not valid any
 * more or its memory is not mapped.
 */
static bool poll_place_carried(struct urxe_cq *cq, uint32_t pd,
			       const struct urxe_recv *r, uint32_t max_sge,
			       const struct urxe_cqe *e)
{
	/* read once: it is shared memory */
	uint32_t num_sge = load_relaxed(&r->num_sge);
	struct urxe_context *ctx = cq->ctx;
	const struct urxe_key *k;
	struct urxe_sge sge;
	const uint8_t *data;
	uint32_t i, n, left;

	data = poll_data(cq, e, &left);
	if (unlikely(!data))
		return false;
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

static void poll_fail_receive(struct urxe_cqe *e, enum ibv_wc_status status)
{
	e->status = status;
	e->byte_len = 0;
	e->wc_flags = 0;
	e->inline_len &= URXE_CQE_SRQ;
}

/*
 * Place the bytes that @e carries, once: an entry may be settled before it is
 * polled. If that fails, @e becomes a protection error, as if the responder
 * had found it when the message arrived, and the QP is moved to ERR. Messages
 * that arrived meanwhile are flushed (poll_follows_failure()).
 */
static void poll_place(struct urxe_cq *cq, uint32_t pd,
		       const struct urxe_recv *r, uint32_t max_sge,
		       struct urxe_cqe *e)
{
	if (likely(!(e->inline_len & ~URXE_CQE_SRQ)))
		return;
	if (unlikely(!poll_place_carried(cq, pd, r, max_sge, e))) {
		poll_fail_receive(e, IBV_WC_LOC_PROT_ERR);
		conn_break_unplaced(cq->ctx->fabric, e->qpn);
	}
	e->inline_len &= URXE_CQE_SRQ;
}

/*
 * Return whether an earlier receive of the QP failed because its bytes could
 * not be placed. @qp is NULL if the QP is an XRC target of another process.
 */
static inline bool poll_follows_failure(const struct urxe_cq *cq,
					const struct urxe_qp *qp, uint32_t qpn)
{
	return qp ? load_relaxed(&qp->sh->unplaced) :
		    conn_is_unplaced(cq->ctx->fabric, qpn);
}

/*
 * The queue slot that a completion releases: a kept receive (rq.h), or all
 * slots of a queue before `end`, or none if the QP was destroyed.
 *
 * It is released after the completion's entry. So the next WR posted to that
 * slot finds room for its completion even in a CQ that is just large enough.
 */
struct slot_release {
	_Atomic uint32_t *tail;
	uint32_t end;
	struct urxe_kept *kept;
	struct urxe_rq *rq; /* the queue of kept */
};

/* Complete a receive of a queue that several requesters consume. */
static void poll_settle_kept(struct urxe_cq *cq, struct urxe_rq *rq,
			     uint32_t pd, uint32_t ticket, struct urxe_cqe *e,
			     struct slot_release *p)
{
	p->rq = rq;
	p->kept = rq_kept(rq, ticket);
	if (p->kept)
		poll_place(cq, pd, kept_recv(p->kept), rq->max_sge, e);
}

/* Complete a receive of an SRQ. Return false if its QP was destroyed. */
static bool __attribute__((noinline))
poll_settle_srq(struct urxe_cq *cq, struct urxe_cqe *e, struct slot_release *p,
		bool again)
{
	struct urxe_srq *srq = context_srq(cq->ctx, URXE_WQE_INDEX(e->wqe));
	const struct urxe_qp *qp;

	if (unlikely(!srq))
		return false;
	qp = e->qpn ? context_qp(cq->ctx, e->qpn) : NULL;
	if (qp && qp->qpn != e->qpn)
		qp = NULL;
	if (e->qpn && !again && unlikely(poll_follows_failure(cq, qp, e->qpn)))
		poll_fail_receive(e, IBV_WC_WR_FLUSH_ERR);
	poll_settle_kept(cq, &srq->rq, srq->sh->pd, URXE_WQE_TICKET(e->wqe), e,
			 p);
	/* an XRC target QP may belong to another process */
	return srq->cq || qp;
}

/*
 * Release the queue up to p->end, unless p->end is beyond what the queue can
 * hold (damaged entry).
 */
static inline void poll_settle_tail(struct slot_release *p,
				    _Atomic uint32_t *tail, uint32_t mask)
{
	if (likely(p->end - load_relaxed(tail) - 1 <= mask))
		p->tail = tail;
}

/*
 * Find the queue slot that @e releases and place the bytes that it carries.
 * @again: that was done before, when @e left the ring. Return false if the QP
 * was destroyed.
 */
static inline bool __attribute__((always_inline))
poll_settle(struct urxe_cq *cq, struct urxe_cqe *e, struct slot_release *p,
	    bool again)
{
	struct urxe_qp *qp;

	p->tail = NULL;
	p->kept = NULL;
	if (e->inline_len & URXE_CQE_SRQ)
		return poll_settle_srq(cq, e, p, again);
	qp = context_qp(cq->ctx, e->qpn);
	if (unlikely(!qp || qp->qpn != e->qpn))
		return false;
	p->end = e->wqe + 1;
	if (e->opcode & IBV_WC_RECV && unlikely(!qp->rq.ring))
		return true; /* not written by a valid producer */
	if (e->opcode & IBV_WC_RECV && !again &&
	    unlikely(poll_follows_failure(cq, qp, e->qpn)))
		poll_fail_receive(e, IBV_WC_WR_FLUSH_ERR);
	if (e->opcode & IBV_WC_RECV && rq_kept_set(&qp->rq)) {
		poll_settle_kept(cq, &qp->rq, qp->sh->pd, e->wqe, e, p);
	} else if (e->opcode & IBV_WC_RECV) {
		poll_place(cq, qp->sh->pd, rq_slot(&qp->rq, e->wqe),
			   qp->rq.max_sge, e);
		poll_settle_tail(p, &qp->rq.tail, qp->rq.mask);
	} else {
		poll_settle_tail(p, &qp->sq.tail, qp->sq.mask);
	}
	return true;
}

/*
 * Return whether the words at the head cannot result from the ring protocol.
 *
 * A shared head ahead of cq->head, or a claim for a later position, is valid
 * only if a forked process polls this ring too. The load of the shared head
 * is acquire so that cq->forked, set before that fork, is visible.
 */
static bool poll_is_damaged(const struct urxe_cq *cq, uint64_t claim)
{
	const struct cq_ring *r = &cq->ring;
	uint64_t word = load_relaxed(&r->entry[cq->head & r->mask].word);
	uint32_t published_head = load_acquire(r->head);

	if ((cqe_pos(claim) - cq->head) & r->mask ||
	    (cqe_pos(word) - cq->head) & r->mask ||
	    cqe_state(word) != CQE_READY ||
	    (cqe_state(claim) != CQE_CLAIMED &&
	     cqe_state(claim) != CQE_MOVED) ||
	    (int32_t)(published_head - cq->head) < 0)
		return true;
	return !load_relaxed(&cq->forked) &&
	       (published_head != cq->head ||
		(int32_t)(cqe_pos(claim) - cq->head) > 0);
}

/*
 * Handle a head entry that is not READY. Return true if it was skipped
 * because the producer that claimed it is dead, or if it has become READY.
 * Break the CQ if its ring is damaged.
 */
static bool __attribute__((cold, noinline)) poll_skip_dead(struct urxe_cq *cq)
{
	const struct cq_ring *r = &cq->ring;
	const uint64_t claim = load_acquire(&r->claim[cq->head & r->mask]);
	const uint32_t owner = cqe_owner(claim);
	uint64_t now;

	store_relaxed(&cq->closely, false);
	if (!cq_ring_is_claimed(claim, cq->head) || !cq_is_ours(cq)) {
		if (unlikely(poll_is_damaged(cq, claim)))
			cq_break(&cq->view, "the ring is damaged");
		return false;
	}
	/* rate-limited by time: the program may poll rarely */
	now = clock_now();
	if (now < cq->ask_at)
		return false;
	if (!owner || !process_brief_is_dead(cq->ctx->fabric, owner)) {
		cq->ask_at = now + STUCK_NS;
		return false;
	}
	/* after the death was seen, all stores of that process are visible */
	if (cq_ring_is_ready(&r->entry[cq->head & r->mask], cq->head))
		return true;
	urxe_note(
		"CQ entry %u skipped: the producer died while it wrote the entry",
		cq->head);
	cq_ring_release(r, ++cq->head);
	store_relaxed(&cq->closely, true); /* check the next claim */
	return true;
}

static inline struct urxe_cqe *poll_ring_next(struct urxe_cq *cq)
{
	struct urxe_cqe *e;

	do {
		e = &cq->ring.entry[cq->head & cq->ring.mask];
		if (likely(cq_ring_is_ready(e, cq->head)) && cq_is_ours(cq))
			return e;
	} while (unlikely(load_relaxed(&cq->closely)) && poll_skip_dead(cq));
	return NULL;
}

struct urxe_cqe *poll_ring(struct urxe_cq *cq)
{
	return poll_ring_next(cq);
}

/*
 * Release an entry, of the backlog or of the ring, and then the queue slots
 * that its WR occupied.
 */
static inline void poll_release(struct urxe_cq *cq,
				const struct slot_release *p)
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
 * Return the next completion, or NULL. The caller is inside the gate. It
 * reads the entry and then calls poll_release().
 */
static inline struct urxe_cqe *poll_next(struct urxe_cq *cq,
					 struct slot_release *p)
{
	struct urxe_cqe *e;

	for (;;) {
		/* entries that a resize took from the old ring come first */
		e = unlikely(cq->backlog != NULL) ?
			    &cq->backlog->cqe[cq->backlog->head] :
			    poll_ring_next(cq);
		if (!e || likely(poll_settle(cq, e, p, cq->backlog != NULL)))
			return e;
		poll_release(cq, p);
	}
}

void poll_leaves_ring(struct urxe_cq *cq, struct urxe_cqe *e)
{
	struct slot_release p;

	poll_settle(cq, e, &p, false);
}

bool poll_take(struct urxe_cq *cq, struct urxe_cqe *copy)
{
	struct slot_release p;
	struct urxe_cqe *e;

	eager_provide(cq);
	e = poll_next(cq, &p);
	if (!e)
		return false;
	memcpy(copy, e, sizeof(*copy));
	poll_release(cq, &p);
	return true;
}

/*
 * Fast path: poll the ready entry @e at the head of the ring if it has no
 * inline data and its queue has no kept receives, as most completions. Return
 * false, with no queue changed, if the general path must be taken.
 */
static inline bool __attribute__((always_inline))
poll_plain(struct urxe_cq *cq, const struct urxe_cqe *e, struct ibv_wc *wc)
{
	_Atomic uint32_t *tail;
	uint32_t qpn, end, mask;
	struct urxe_qp *qp;

	if (unlikely(cq->backlog || !cq_is_ours(cq) || e->inline_len))
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
		if (unlikely(!qp->rq.ring || rq_kept_set(&qp->rq) ||
			     poll_follows_failure(cq, qp, qpn)))
			return false;
		tail = &qp->rq.tail;
		mask = qp->rq.mask;
	}
	cq_ring_release(&cq->ring, ++cq->head);
	/* not if beyond what the queue can hold (damaged entry) */
	if (likely(end - load_relaxed(tail) - 1 <= mask))
		store_release(tail, end);
	return true;
}

static inline const struct urxe_cqe *poll_head(const struct urxe_cq *cq)
{
	return &cq->ring.entry[cq->head & cq->ring.mask];
}

/*
 * Place the bytes that @e carries if that is plain: one SGE, to private memory
 * of this process. Return false if the general path must do it.
 */
static inline bool __attribute__((always_inline))
poll_place_plain(struct urxe_cq *cq, const struct urxe_qp *qp,
		 const struct urxe_cqe *e)
{
	const struct urxe_recv *r = rq_slot(&qp->rq, e->wqe);
	const struct urxe_sge sge = recv_sge(&r->sge[0]);
	const struct urxe_key *k;
	const uint8_t *data;
	uint32_t len;

	data = poll_data(cq, e, &len);
	if (unlikely(load_relaxed(&r->num_sge) != 1 || !qp->rq.max_sge ||
		     !data || len > sge.length || !nofault_is_safe()))
		return false;
	k = mem_lookup(qp->ctx->self, sge.lkey, qp->sh->pd, sge.addr, len,
		       IBV_ACCESS_LOCAL_WRITE);
	return likely(k && k->kind == URXE_MEM_PRIVATE &&
		      mem_is_mine(qp->ctx->self, k)) &&
	       likely(transfer_local_known(
		       (char *)(uintptr_t)(k->va + (sge.addr - k->iova)),
		       (const char *)data, len, true));
}

/*
 * The same for a receive whose completion carries its bytes, if its queue has
 * no kept receives.
 */
static bool __attribute__((noinline))
poll_carried(struct urxe_cq *cq, struct ibv_wc *wc)
{
	const struct urxe_cqe *e = poll_head(cq);
	struct urxe_qp *qp;
	uint32_t end;

	if (unlikely(cq->backlog || !cq_ring_is_ready(e, cq->head) ||
		     !cq_is_ours(cq)) ||
	    !e->inline_len || e->inline_len & URXE_CQE_SRQ)
		return false;
	qp = context_qp(cq->ctx, e->qpn);
	if (unlikely(!qp || qp->qpn != e->qpn || !qp->rq.ring ||
		     rq_kept_set(&qp->rq) ||
		     poll_follows_failure(cq, qp, e->qpn) ||
		     !poll_place_plain(cq, qp, e)))
		return false;
	poll_fill_wc(e, wc);
	end = e->wqe + 1;
	cq_ring_release(&cq->ring, ++cq->head);
	if (likely(end - load_relaxed(&qp->rq.tail) - 1 <= qp->rq.mask))
		store_release(&qp->rq.tail, end);
	return true;
}

static bool __attribute__((noinline))
poll_other(struct urxe_cq *cq, struct ibv_wc *wc)
{
	struct slot_release p;
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

/*
 * Leave the gate and release the lock that poll_quick() or poll_slow() took,
 * and note the number of completions. Return @got.
 */
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

/*
 * Poll up to @n completions, of which @got are already in @wc. The caller is
 * inside the gate, which is left.
 */
static int __attribute__((noinline))
poll_some(struct urxe_cq *cq, int n, struct ibv_wc *wc, int got)
{
	eager_provide(cq);
	while (got < n &&
	       (poll_carried(cq, &wc[got]) || poll_other(cq, &wc[got])))
		got++;
	return poll_leave(cq, got);
}

/* The same, with the ready entry @e at the head. */
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

/* Look for work elsewhere.  Return true if the poller has yielded. */
static bool poll_elsewhere(struct urxe_cq *cq, uint32_t polls)
{
	bool (*waits)(struct urxe_context *, uint32_t) =
		load_acquire(&cq->ctx->poller_waits);

	return unlikely(waits) && waits(cq->ctx, polls);
}

void poll_waits(struct urxe_cq *cq, uint32_t empty)
{
	const bool check = empty % POLL_CHECK_INTERVAL == 0;
	const bool progress = poll_has_progress(cq);
	bool yielded;

	if (!check && !progress)
		return;
	yielded = empty &&
		  poll_elsewhere(cq, progress ? POLL_ELSEWHERE_INTERVAL :
						POLL_CHECK_INTERVAL);
	if (!check)
		return;
	store_relaxed(&cq->closely, true);
	if (empty < IDLE_POLLS)
		return;
	store_relaxed(&cq->empty, 0);
	rq_recover_waiting(cq->ctx);
	if (!yielded)
		idle_yield(IDLE_POLLS);
}

/*
 * Slow path of poll_cq(): progress of the QPs is pending, the idle check is
 * due, or another thread holds the lock.
 */
static int __attribute__((noinline))
poll_slow(struct urxe_cq *cq, int n, struct ibv_wc *wc)
{
	poll_begin(cq);
	cq_lock(cq);
	gate_enter(&cq->gate);
	return poll_some(cq, n, wc, 0);
}

/*
 * Enter the gate after an outsider, which does not take cq->lock, has claimed
 * it.
 */
static int __attribute__((cold, noinline))
poll_after_outsider(struct urxe_cq *cq, int n, struct ibv_wc *wc)
{
	gate_enter_slow(&cq->gate);
	return poll_some(cq, n, wc, 0);
}

/*
 * The fast path. On an empty CQ this function is the whole poll, and
 * everything on that path is inlined, so that no registers are saved.
 */
static inline int __attribute__((always_inline))
poll_quick(struct urxe_cq *cq, int n, struct ibv_wc *wc, bool locks)
{
	const uint32_t empty = load_relaxed(&cq->empty);
	const struct urxe_cqe *e;
	uint32_t head, seq;

	if (unlikely(empty % POLL_CHECK_INTERVAL == 0 ||
		     poll_has_progress(cq)) ||
	    unlikely(locks && !mutex_trylock(&cq->lock)))
		return poll_slow(cq, n, wc);
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

/*
 * The CQ is single-threaded, so that the gate is its only lock, or the system
 * has no membarrier(2) and the gate needs full barriers.
 */
static int __attribute__((noinline))
poll_alone(struct urxe_cq *cq, int n, struct ibv_wc *wc)
{
	return likely(presence_cheap && cq->single_threaded) ?
		       poll_quick(cq, n, wc, false) :
		       poll_slow(cq, n, wc);
}

int poll_cq(struct urxe_cq *cq, int n, struct ibv_wc *wc)
{
	return likely(cq->quick) ? poll_quick(cq, n, wc, true) :
				   poll_alone(cq, n, wc);
}

/* Return unpolled receives to their SRQs. */
static void poll_drop(struct urxe_cq *cq)
{
	struct slot_release p;

	if (!gate_trylock(&cq->gate))
		return;
	while (poll_next(cq, &p))
		poll_release(cq, &p);
	gate_unlock(&cq->gate);
}

bool poll_unlink(struct urxe_cq *cq)
{
	struct urxe_context *ctx = cq->ctx;
	struct urxe_cq **p;
	bool busy;

	pthread_mutex_lock(&ctx->lock);
	busy = cq->refs;
	if (!busy) {
		poll_drop(cq);
		for (p = &ctx->cqs; *p != cq; p = &(*p)->next)
			;
		*p = cq->next;
	}
	pthread_mutex_unlock(&ctx->lock);
	if (busy)
		return false;
	store_seq_cst(&cq->sh->arm, URXE_ARM_NONE);
	store_release(&cq->sh->live, 0);
	return true;
}
