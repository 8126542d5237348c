// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Robust locks; shared/robust.h describes the protocol.  Any thread may call
 * these functions.  The lock is not recursive: threads of one process have
 * the same id and exclude each other.
 */
#include <errno.h>

#include "base/futex.h"
#include "base/patience.h"
#include "fabric.h"

/* Store the reason of a timeout: holder, lock and time.  -ETIMEDOUT */
static int robust_name_holder(struct urxe_fabric *f, uint32_t id,
			      const char *what, uint64_t ns)
{
	const struct urxe_process *p =
		&f->dev->process[URXE_PROCESS_NUMBER(id)];

	return fabric_fail(
		ETIMEDOUT, "pid %d (%.15s) has held %s for at least %d ms%s",
		load_relaxed(&p->pid), p->comm, what, (int)(ns / 1000000),
		process_thread_is_stopped(f, id, 0) ? " and is stopped" : "");
}

static bool robust_holder_is_dead(struct urxe_fabric *f, uint32_t word)
{
	return process_is_dead(f, word & ~ROBUST_WAITERS);
}

static int robust_wait(struct urxe_fabric *f, struct robust_lock *l,
		       uint32_t me, const char *what, uint64_t limit)
{
	uint32_t word, turn = load_relaxed(&l->turn);
	struct patience patience = patience_begin(limit);

	for (;;) {
		word = load_relaxed(&l->word);
		if (!word) {
			if (cas_acquire(&l->word, &word, me | ROBUST_WAITERS))
				return 0;
			continue;
		}
		if (!(word & ROBUST_WAITERS) &&
		    !cas_relaxed(&l->word, &word, word | ROBUST_WAITERS))
			continue;
		word |= ROBUST_WAITERS;
		futex_wait(&l->word, word, ROBUST_CHECK_NS);
		if (load_relaxed(&l->word) != word)
			continue;
		if (robust_holder_is_dead(f, word) &&
		    cas_acquire(&l->word, &word, me | ROBUST_WAITERS))
			return 1;
		if (load_relaxed(&l->turn) != turn) {
			turn = load_relaxed(&l->turn);
			patience = patience_begin(limit);
		} else if (patience_ended(&patience)) {
			return robust_name_holder(f, word & ~ROBUST_WAITERS,
						  what, limit);
		}
	}
}

static int robust_taken(struct robust_lock *l, int ret)
{
	if (ret >= 0)
		store_relaxed(&l->turn, load_relaxed(&l->turn) + 1);
	return ret;
}

int robust_lock_within(struct urxe_fabric *f, struct robust_lock *l,
		       const char *what, uint64_t limit)
{
	uint32_t none = 0, me = process_id(f);
	int ret = 0;

	if (!me)
		return -ENOMEM;
	if (!cas_acquire(&l->word, &none, me))
		ret = robust_wait(f, l, me, what, limit);
	return robust_taken(l, ret);
}

int robust_lock(struct urxe_fabric *f, struct robust_lock *l, const char *what)
{
	return robust_lock_within(f, l, what, ROBUST_TIMEOUT_NS);
}

int robust_try(struct urxe_fabric *f, struct robust_lock *l)
{
	uint32_t word = 0, me = process_id(f);
	int ret = 0;

	if (!me)
		return -ENOMEM;
	if (!cas_acquire(&l->word, &word, me)) {
		ret = robust_holder_is_dead(f, word) &&
				      cas_acquire(&l->word, &word,
						  me | ROBUST_WAITERS) ?
			      1 :
			      -EBUSY;
	}
	return robust_taken(l, ret);
}

void robust_unlock(struct urxe_fabric *f, struct robust_lock *l)
{
	uint32_t me = process_id(f), word = me;

	if (cas_release(&l->word, &word, 0) || word != (me | ROBUST_WAITERS))
		return; /* released, or damaged and taken over by others */
	if (cas_release(&l->word, &word, 0))
		futex_wake(&l->word, 1);
}
