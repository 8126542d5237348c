// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory windows: bind (IB 10.6.7.2), local and remote invalidate, and
 * unbind.
 *
 * A bound window is a key table entry that describes the memory itself;
 * bind.h has the rules.  Entries change under the arena's lock only.
 * bind_undo() sets the live word to a mark, so that no requester can begin to
 * use the window, and then waits until no guard names it (quiesce_mw()).
 *
 * bind_execute() and bind_invalidate() execute work requests, in the thread
 * of the requester, with qp->lock held.  The wire server calls
 * bind_invalidate() for SEND WITH INVALIDATE from other hosts.  Both lower
 * the QP's guard while they wait; otherwise two QPs could wait for each
 * other.  ibv_dealloc_mw() calls bind_undo().
 *
 * A stopped process may use the window.  bind_invalidate() then leaves the
 * window as it was and returns URXE_INV_BUSY, and the caller repeats the
 * call.
 */
#include "base/patience.h"
#include "bind.h"
#include "engine/copy/bounce.h"
#include "engine/mr/key.h"
#include "engine/core/log.h"
#include "engine/run/quiesce.h"
#include "engine/qp/why.h"

#define REMOTE_WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/*
 * The mark in k->live is unique, because a->leaving counts.  If it is still
 * there after the wait, during which the lock is not held, no other thread
 * has bound the window or begun to unbind it meanwhile.
 */
int bind_undo(struct urxe_fabric *f, struct urxe_arena *a, struct urxe_key *k,
	      struct patience *patience)
{
	const uint64_t mark = URXE_MR_LEAVING(++a->leaving);
	const uint64_t was = load_relaxed(&k->live);
	uint32_t mr;
	bool unused;
	int ret;

	store_seq_cst(&k->live, mark);
	arena_unlock(f, a);
	unused = quiesce_mw(f, a, URXE_KEY(a->slot, k - a->key, 0), patience);
	ret = arena_lock(f, a);
	if (ret || load_relaxed(&k->live) != mark)
		return ret;
	if (!unused) {
		store_release(&k->live, was);
		arena_unlock(f, a);
		return -EAGAIN;
	}
	store_relaxed(&k->live, 0);
	mr = URXE_KEY_INDEX(k->parent);
	if (mr < load_acquire(&a->key_high))
		fetch_sub_relaxed(&a->key[mr].windows, 1);
	k->parent = 0;
	return 0;
}

/* Note the reason (why.h) and evaluate to false. */
#define refuse(...) (why_note(__VA_ARGS__), false)

/* Check the window of a bind WR (IB 10.6.7.2); the arena's lock is held. */
static bool bind_check_window(const struct urxe_qp *qp,
			      const struct urxe_wqe *w,
			      const struct urxe_key *k)
{
	if (!(k->flags & URXE_MR_IS_MW))
		return refuse(BIND_NONE, w->bind.mw_key);
	if (URXE_KEY_CTX(w->bind.mw_key) != qp->ctx->slot)
		return refuse(BIND_CONTEXT, w->bind.mw_key, qp->qpn);
	if (k->pd != qp->sh->pd)
		return refuse(BIND_PD, k->pd, qp->sh->pd);
	if (!(k->flags & URXE_MR_TYPE_2))
		return true;
	if (load_relaxed(&k->live) & URXE_MR_LIVE(0))
		return refuse(BIND_BOUND, w->bind.mw_key);
	if (!w->bind.length)
		return refuse(BIND_LENGTH, w->bind.mw_key);
	return true;
}

/* Check the MR of a bind WR (IB 10.6.7.2); the arena's lock is held. */
static bool bind_check_region(const struct urxe_wqe *w,
			      const struct urxe_key *mr, uint32_t pd)
{
	uint64_t addr = w->bind.addr, len = w->bind.length;

	if (load_relaxed(&mr->live) != URXE_MR_LIVE(w->bind.mr_key) ||
	    mr->flags & URXE_MR_IS_MW)
		return refuse(BIND_NO_MR, w->bind.mr_key);
	if (mr->pd != pd)
		return refuse(BIND_MR_PD, mr->pd, pd);
	if (!(mr->access & IBV_ACCESS_MW_BIND))
		return refuse(BIND_MR_RIGHT, mr->access);
	if (w->bind.access & REMOTE_WRITES &&
	    !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return refuse(BIND_MR_WRITE, w->bind.access, mr->access);
	if (addr < mr->iova || len > mr->length ||
	    addr - mr->iova > mr->length - len)
		return refuse(BIND_RANGE, mr->iova, mr->iova + mr->length, addr,
			      addr + len);
	return true;
}

static void bind_to(const struct urxe_qp *qp, const struct urxe_wqe *w,
		    struct urxe_key *k, struct urxe_key *mr)
{
	uint64_t offset = w->bind.addr - mr->iova;

	k->iova = w->bind.access & IBV_ACCESS_ZERO_BASED ? 0 : w->bind.addr;
	k->length = w->bind.length;
	k->va = mr->va + offset;
	k->access = w->bind.access;
	k->pid = mr->pid;
	k->kind = mr->kind;
	k->flags =
		(k->flags & (URXE_MR_IS_MW | URXE_MR_TYPE_2)) |
		(mr->flags & (URXE_MR_ODP | URXE_MR_FOREIGN | URXE_MR_SHARED));
	k->file = mr->file;
	k->file_offset = mr->file_offset + offset;
	k->qpn = qp->qpn;
	k->parent = w->bind.mr_key;
	fetch_add_relaxed(&mr->windows, 1);
	key_enable(qp->ctx->arena, k, w->bind.new_key);
}

static bool bind_check(const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	const struct urxe_arena *a = qp->ctx->arena;
	uint32_t i = URXE_KEY_INDEX(w->bind.mw_key);
	uint32_t mr = URXE_KEY_INDEX(w->bind.mr_key);
	uint32_t high = load_acquire(&a->key_high);

	if (i >= high)
		return refuse(BIND_NONE, w->bind.mw_key);
	if (!bind_check_window(qp, w, &a->key[i]))
		return false;
	if (!w->bind.length)
		return true;
	if (mr >= high)
		return refuse(BIND_NO_MR, w->bind.mr_key);
	return bind_check_region(w, &a->key[mr], a->key[i].pd);
}

/* Check and bind, under the arena's lock; the QP's guard is lowered. */
static bool bind_try(struct urxe_qp *qp, const struct urxe_wqe *w)
{
	struct urxe_fabric *f = qp->ctx->fabric;
	struct urxe_arena *a = qp->ctx->arena;
	uint32_t i = URXE_KEY_INDEX(w->bind.mw_key);
	bool may;
	int ret;

	ret = arena_lock(f, a);
	if (ret)
		return refuse(BIND_LOCK, -ret);
	while ((may = bind_check(qp, w)) && a->key[i].parent) {
		ret = bind_undo(f, a, &a->key[i], NULL); /* type 1: rebind */
		if (ret)
			return refuse(BIND_LOCK, -ret);
	}
	if (may) {
		store_relaxed(&a->key_tag[i], URXE_KEY_TAG(w->bind.new_key));
		if (w->bind.length)
			bind_to(qp, w, &a->key[i],
				&a->key[URXE_KEY_INDEX(w->bind.mr_key)]);
	}
	arena_unlock(f, a);
	return may;
}

bool bind_execute(struct urxe_qp *qp, const struct urxe_wqe *w)
{
	bool bound;

	if (w->bind.access & ~MW_ACCESS)
		return refuse(BIND_FLAGS, w->bind.access, MW_ACCESS);
	guard_lower(qp->guard);
	bound = bind_try(qp, w);
	qp_guard_raise(qp, load_relaxed(&qp->guard->uses));
	return bound;
}

/* ------------------------------------------------------- invalidating */

/*
 * Whether the window is bound with @rkey.  A process that was killed in
 * bind_undo() left a mark in its live word; the key's tag tells then.
 */
static bool bind_is_bound(const struct urxe_arena *a, uint32_t rkey)
{
	const uint32_t i = URXE_KEY_INDEX(rkey);
	const struct urxe_key *k = &a->key[i];
	const uint64_t live = load_relaxed(&k->live);

	return live == URXE_MR_LIVE(rkey) ||
	       (live && !(live & URXE_MR_LIVE(0)) && k->parent &&
		URXE_KEY_CTX(rkey) == a->slot &&
		load_relaxed(&a->key_tag[i]) == URXE_KEY_TAG(rkey));
}

/*
 * Whether @rkey is a window that QP @qpn of PD @pd may invalidate; the
 * arena's lock is held.  A window of type 1 cannot be invalidated, only
 * rebound.
 */
static bool bind_may_invalidate(const struct urxe_arena *a, uint32_t rkey,
				uint32_t qpn, uint32_t pd)
{
	uint32_t i = URXE_KEY_INDEX(rkey);
	const struct urxe_key *k = &a->key[i];

	return i < load_relaxed(&a->key_high) && bind_is_bound(a, rkey) &&
	       k->flags & URXE_MR_IS_MW && k->flags & URXE_MR_TYPE_2 &&
	       k->qpn == qpn && k->pd == pd;
}

/* @limit: of the wait for other requesters, in ns; 0: none. */
static enum urxe_inv invalidate_within(struct urxe_qp *qp, struct urxe_peer *p,
				       uint32_t qpn, uint32_t pd, uint32_t rkey,
				       uint64_t limit)
{
	struct urxe_fabric *f = qp->ctx->fabric;
	struct urxe_arena *a = p->arena;
	struct patience patience;
	bool found = false;
	int ret;

	guard_lower(qp->guard);
	ret = arena_lock(f, a);
	if (!ret) {
		patience = patience_begin(limit);
		found = bind_may_invalidate(a, rkey, qpn, pd);
		if (found)
			ret = bind_undo(f, a, &a->key[URXE_KEY_INDEX(rkey)],
					limit ? &patience : NULL);
		if (!ret)
			arena_unlock(f, a);
	}
	qp_guard_raise(qp, load_relaxed(&qp->guard->uses));
	if (limit && (ret == -EAGAIN || ret == -ETIMEDOUT)) {
		why_note(STOPPED, a->pid);
		return URXE_INV_BUSY;
	}
	if (ret)
		why_note(BIND_LOCK, -ret);
	else if (!found)
		why_note(INVALIDATE, rkey, qpn);
	return found && !ret ? URXE_INV_DONE : URXE_INV_FAILED;
}

bool bind_invalidate_local(struct urxe_qp *qp, uint32_t rkey)
{
	return invalidate_within(qp, qp->ctx->self, qp->qpn, qp->sh->pd, rkey,
				 0) == URXE_INV_DONE;
}

enum urxe_inv bind_invalidate(struct urxe_qp *qp, struct urxe_peer *p,
			      uint32_t qpn, uint32_t pd, uint32_t rkey,
			      bool again)
{
	/* as long as for a bouncer; a retry must not delay other QPs */
	return invalidate_within(qp, p, qpn, pd, rkey,
				 again ? QUIESCE_TRY_NS : BOUNCE_TIMEOUT_NS);
}
