// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "bind.h"
#include "bounce.h"
#include "key.h"
#include "log.h"
#include "quiesce.h"

#define REMOTE_WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/*
 * Who finds his own mark again, after he let the lock go and waited, knows that
 * nobody bound the window meanwhile, or began to unbind it after him.
 */
int bind_undo(struct urxe_fabric *f, struct urxe_arena *a, struct urxe_key *k)
{
	const uint64_t mark = URXE_MR_LEAVING(++a->leaving);
	uint32_t mr;
	int ret;

	store_seq_cst(&k->live, mark);
	arena_unlock(f, a);
	quiesce_mw(f, a, URXE_KEY(a->slot, k - a->key, 0));
	ret = arena_lock(f, a);
	if (ret || load_relaxed(&k->live) != mark)
		return ret;
	store_relaxed(&k->live, 0);
	mr = URXE_KEY_INDEX(k->parent);
	if (mr < load_acquire(&a->key_high))
		fetch_sub_relaxed(&a->key[mr].windows, 1);
	k->parent = 0;
	return 0;
}

/* IB 10.6.7.2: NULL, or why this cannot be bound. */
static const char *bind_check_window(const struct urxe_qp *qp,
				     const struct urxe_wqe *w,
				     const struct urxe_key *k)
{
	if (!(k->flags & URXE_MR_IS_MW))
		return "it does not exist (any more)";
	if (URXE_KEY_CTX(w->bind.mw_key) != qp->ctx->slot)
		return "it is of another context";
	if (k->pd != qp->sh->pd)
		return "the QP is of another PD";
	if (!(k->flags & URXE_MR_TYPE_2))
		return NULL;
	if (load_relaxed(&k->live) & URXE_MR_LIVE(0))
		return "type 2, and it is bound already";
	if (!w->bind.length)
		return "type 2 needs a length";
	return NULL;
}

static const char *bind_check_region(const struct urxe_wqe *w,
				     const struct urxe_key *mr, uint32_t pd)
{
	uint64_t len = w->bind.length;

	if (load_relaxed(&mr->live) != URXE_MR_LIVE(w->bind.mr_key) ||
	    mr->flags & URXE_MR_IS_MW)
		return "the MR does not exist";
	if (mr->pd != pd)
		return "the MR is of another PD";
	if (!(mr->access & IBV_ACCESS_MW_BIND))
		return "the MR does not have IBV_ACCESS_MW_BIND";
	if (w->bind.access & REMOTE_WRITES &&
	    !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return "remote write access needs an MR with IBV_ACCESS_LOCAL_WRITE";
	if (w->bind.addr < mr->iova || len > mr->length ||
	    w->bind.addr - mr->iova > mr->length - len)
		return "the MR does not cover it";
	return NULL;
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
	k->flags = (k->flags & (URXE_MR_IS_MW | URXE_MR_TYPE_2)) |
		   (mr->flags & (URXE_MR_ODP | URXE_MR_FOREIGN | URXE_MR_SHARED));
	k->file = mr->file;
	k->file_offset = mr->file_offset + offset;
	k->qpn = qp->qpn;
	k->parent = w->bind.mr_key;
	fetch_add_relaxed(&mr->windows, 1);
	key_enable(k, w->bind.new_key);
}

static const char *bind_check(const struct urxe_qp *qp,
			      const struct urxe_wqe *w)
{
	const struct urxe_arena *a = qp->ctx->arena;
	uint32_t i = URXE_KEY_INDEX(w->bind.mw_key);
	uint32_t mr = URXE_KEY_INDEX(w->bind.mr_key);
	uint32_t high = load_acquire(&a->key_high);
	const char *why;

	if (i >= high)
		return "it does not exist";
	why = bind_check_window(qp, w, &a->key[i]);
	if (why || !w->bind.length)
		return why;
	if (mr >= high)
		return "the MR does not exist";
	return bind_check_region(w, &a->key[mr], a->key[i].pd);
}

/* Takes the arena's lock; our guard is down. */
static const char *bind_try(struct urxe_qp *qp, const struct urxe_wqe *w)
{
	struct urxe_fabric *f = qp->ctx->fabric;
	struct urxe_arena *a = qp->ctx->arena;
	uint32_t i = URXE_KEY_INDEX(w->bind.mw_key);
	const char *why;

	if (arena_lock(f, a))
		return fabric_why();
	while (!(why = bind_check(qp, w)) && a->key[i].parent)
		if (bind_undo(f, a, &a->key[i])) /* type 1: bound anew */
			return fabric_why();
	if (!why) {
		a->key_tag[i] = URXE_KEY_TAG(w->bind.new_key);
		if (w->bind.length)
			bind_to(qp, w, &a->key[i],
				&a->key[URXE_KEY_INDEX(w->bind.mr_key)]);
	}
	arena_unlock(f, a);
	return why;
}

bool bind_execute(struct urxe_qp *qp, const struct urxe_wqe *w)
{
	const char *why = "unknown access flags";

	if (!(w->bind.access & ~MW_ACCESS)) {
		guard_lower(qp->guard);
		why = bind_try(qp, w);
		qp_guard_raise(qp, load_relaxed(&qp->guard->uses));
	}
	if (why)
		urxe_why("QP 0x%x: a memory window cannot be bound: %s",
			 qp->qpn, why);
	return !why;
}

/* ------------------------------------------------------- invalidating */

/* Under the lock of a.  A window of type 1 is not invalidated but rebound. */
static bool bind_may_invalidate(const struct urxe_arena *a, uint32_t rkey,
				uint32_t qpn, uint32_t pd)
{
	uint32_t i = URXE_KEY_INDEX(rkey);
	const struct urxe_key *k = &a->key[i];

	return i < load_relaxed(&a->key_high) &&
	       load_relaxed(&k->live) == URXE_MR_LIVE(rkey) &&
	       k->flags & URXE_MR_IS_MW && k->flags & URXE_MR_TYPE_2 &&
	       k->qpn == qpn && k->pd == pd;
}

bool bind_invalidate(struct urxe_qp *qp, struct urxe_peer *p, uint32_t qpn,
		     uint32_t pd, uint32_t rkey)
{
	struct urxe_fabric *f = qp->ctx->fabric;
	struct urxe_arena *a = p->arena;
	bool found = false;
	int ret;

	guard_lower(qp->guard);
	ret = arena_lock(f, a);
	if (!ret) {
		found = bind_may_invalidate(a, rkey, qpn, pd);
		if (found)
			ret = bind_undo(f, a, &a->key[URXE_KEY_INDEX(rkey)]);
		if (!ret)
			arena_unlock(f, a);
	}
	qp_guard_raise(qp, load_relaxed(&qp->guard->uses));
	if (ret)
		urxe_why("rkey 0x%x cannot be invalidated: %s", rkey,
			 fabric_why());
	else if (!found)
		urxe_why(
			"rkey 0x%x, to be invalidated, is not a type 2 window that is bound to QP 0x%x",
			rkey, qpn);
	return found && !ret;
}
