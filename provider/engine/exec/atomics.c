// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic operations (IB 9.4.5), executed by the requester.
 *
 * A word that is mapped here is changed with the CPU's atomics (nofault.h).  A
 * word that is not mapped is read and written with a copy each (transfer()).  A
 * lock in dev->atomic_lock[] makes one operation of the two copies.  It is also
 * taken for a mapped word, which other processes may reach only by copies.
 * Device memory needs no lock, unless dev->atomics_divided is set.
 *
 * The lock is a robust compare-and-swap spinlock: its word contains the id of
 * the owning process and a turn counter, so that it can be taken over from a
 * dead owner.  shared/atomic_lock.h has the states of the word and the rule
 * which words share a lock.
 *
 * Callers are execute.c, direct_fetch.c and, for requests of other hosts,
 * wire/responder/fetch.c, with the caller's guard raised.  If the owner of the
 * lock does not run, the result is RESP_SILENCE, and the QP's timers decide. If
 * the word's page was unmapped, it is a NAK.
 */
#include <sched.h>

#include "atomics.h"
#include "base/clock.h"
#include "base/patience.h"
#include "base/thread.h"
#include "engine/qp/qp.h"
#include "shared/atomic_lock.h"
#include "engine/qp/why.h"

static _Atomic uint64_t *atomics_lock_of(const struct urxe_peer *p,
					 const struct urxe_key *k, uint64_t va)
{
	const struct urxe_arena *a = p->arena;
	uint64_t pidns = k->flags & URXE_MR_FOREIGN ?
				 load_relaxed(&a->other_pidns) :
				 a->pidns;
	bool alone = k->kind == URXE_MEM_PRIVATE &&
		     !(k->flags & URXE_MR_SHARED);

	return &p->fabric->dev->atomic_lock[alone ? atomic_lock_private(
							    va, k->pid, pidns) :
						    atomic_lock_shared(va)];
}

/* Take the lock, whose value is @word, from an owner that is dead. */
static bool atomics_take_over(struct urxe_fabric *f, _Atomic uint64_t *lock,
			      uint64_t word, uint32_t me)
{
	return process_is_dead(f, ATOMIC_OWNER(word)) &&
	       cas_acquire(lock, &word, ATOMIC_HELD(word, me));
}

/*
 * Wait for the lock and take it.  From turn THREAD_YIELDS on, check whether its
 * owner is dead; on a busy machine that many yields take seconds, so the time
 * is checked in each turn.  False: the owner lives but has not released the
 * lock for ATOMIC_TIMEOUT_NS, or a waiter has already marked it ATOMIC_STUCK.
 */
static bool atomics_wait(struct urxe_fabric *f, _Atomic uint64_t *lock,
			 uint32_t me)
{
	struct patience patience = { 0 };
	uint64_t word, seen = 0;
	uint32_t turns;

	for (turns = 1;; turns++) {
		word = load_relaxed(lock);
		if (!ATOMIC_OWNER(word)) {
			if (cas_acquire(lock, &word, ATOMIC_HELD(word, me)))
				return true;
			continue;
		}
		if (word != seen) {
			seen = word;
			turns = 1;
			patience = patience_begin(ATOMIC_TIMEOUT_NS);
		}
		if ((word & ATOMIC_STUCK || turns >= THREAD_YIELDS) &&
		    atomics_take_over(f, lock, word, me))
			return true;
		if (word & ATOMIC_STUCK)
			return false;
		if (patience_ended(&patience))
			cas_relaxed(lock, &word, word | ATOMIC_STUCK);
		thread_give_way(turns);
	}
}

/* False: as atomics_wait(), or this process has no id. */
static bool atomics_lock(struct urxe_fabric *f, _Atomic uint64_t *lock)
{
	uint64_t word = load_relaxed(lock);
	uint32_t me = process_id(f);

	if (unlikely(!me))
		return false;
	if (likely(!ATOMIC_OWNER(word)) &&
	    cas_acquire(lock, &word, ATOMIC_HELD(word, me)))
		return true;
	if (atomics_wait(f, lock, me))
		return true;
	why_note(ATOMIC_LOCK,
		 load_relaxed(&f->dev->process[URXE_PROCESS_NUMBER(ATOMIC_OWNER(
						       load_relaxed(lock)))]
				       .pid));
	return false;
}

static void atomics_unlock(_Atomic uint64_t *lock)
{
	store_release(lock, ATOMIC_FREE(load_relaxed(lock)));
}

/* Change the word at @seg, mapped and aligned; return its value in *old. */
static enum response atomics_by_cpu(const struct urxe_seg *seg,
				    const struct urxe_wqe *w, uint64_t *old)
{
	struct nofault f;

	/* order it after preceding WRITEs, as a READ is */
	fence_before_rmw();
	f = w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ?
		    nofault_fetch_add(seg->ptr, w->atomic.compare_add) :
		    nofault_cas(seg->ptr, w->atomic.compare_add,
				w->atomic.swap);
	*old = f.value;
	if (likely(!f.left))
		return RESP_ACK;
	why_note(MEMORY, seg->pid, seg->va);
	return RESP_NAK_OPERATION;
}

/*
 * Read the word, compute and write it, with a copy each; the lock is held.
 * @ns: minimum time between the read and the write (transport "adversary").
 */
static enum response atomics_by_copy(struct urxe_context *ctx,
				     const struct urxe_seg *seg,
				     const struct urxe_wqe *w, uint32_t ns,
				     uint64_t *old)
{
	struct urxe_seg mine = { .len = 8 };
	enum response resp;
	uint64_t now, until;

	mine.ptr = (char *)old;
	atomic_thread_fence(memory_order_seq_cst);
	resp = moved(transfer(&mine, seg, 8, ctx, false));
	if (resp)
		return resp;
	if (w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		now = *old + w->atomic.compare_add;
	else if (*old == w->atomic.compare_add)
		now = w->atomic.swap;
	else
		return RESP_ACK;
	for (until = ns ? clock_now() + ns : 0; until && clock_now() < until;)
		sched_yield(); /* let other threads access the word */
	mine.ptr = (char *)&now;
	return moved(transfer(seg, &mine, 8, ctx, false));
}

enum response atomics_execute(struct urxe_qp *qp, struct urxe_conn *c,
			      const struct urxe_seg *seg,
			      const struct urxe_key *key,
			      const struct urxe_wqe *w, uint64_t *old)
{
	struct urxe_peer *p = conn_key_peer(c);
	enum response resp;
	_Atomic uint64_t *lock;

	/*
	 * Device memory is mapped by every process.  CPU atomics are enough
	 * there, as long as no process separates read and write.
	 */
	if (key->kind == URXE_MEM_DM && seg->ptr &&
	    likely(!load_acquire(&p->fabric->dev->atomics_divided)))
		return atomics_by_cpu(seg, w, old);
	lock = atomics_lock_of(p, key, seg->va);
	if (!atomics_lock(p->fabric, lock))
		return RESP_SILENCE;
	if (seg->ptr && likely(!qp->atomic_ns))
		resp = atomics_by_cpu(seg, w, old);
	else
		resp = atomics_by_copy(qp->ctx, seg, w, qp->atomic_ns, old);
	atomics_unlock(lock);
	return resp;
}
