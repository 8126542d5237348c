// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The call table (shared/call.h): blocking calls, for urxe why.  The thread
 * that may block calls call_begin() and call_end().  There is no lock: owner
 * is claimed by compare-and-swap.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "fabric.h"

/* Number of slots that a thread tries. */
#define TRIES 32

/*
 * Claim a slot.  The slot of a dead process is free.  So is a slot of this
 * thread: the thread left that call by longjmp(3).
 */
static bool call_claim(struct urxe_fabric *f, struct urxe_call *c, uint32_t id,
		       uint32_t tid)
{
	uint32_t owner = load_relaxed(&c->owner);

	if (owner == id)
		return load_relaxed(&c->tid) == tid;
	if (owner &&
	    (process_seems_alive(&f->dev->process[URXE_PROCESS_NUMBER(owner)],
				 owner) ||
	     !process_is_dead(f, owner)))
		return false;
	return cas_acq_rel(&c->owner, &owner, id);
}

/*
 * The TID of this thread, cached.  A forked child has another process id, so
 * its TID is queried again.
 */
static uint32_t call_tid(uint32_t id)
{
	static thread_own uint32_t known, tid;

	if (known != id) {
		tid = (uint32_t)syscall(SYS_gettid);
		known = id;
	}
	return tid;
}

static struct urxe_call *call_take(struct urxe_fabric *f, uint32_t id,
				   uint32_t tid)
{
	struct urxe_call *c;
	uint32_t i;

	for (i = 0; id && i < TRIES; i++) {
		c = &f->dev->call[(tid + i) % URXE_MAX_CALLS];
		if (call_claim(f, c, id, tid))
			return c;
	}
	return NULL;
}

struct urxe_call *call_begin(struct urxe_fabric *f, enum urxe_call_kind kind,
			     uint32_t context, uint64_t object, uint32_t events)
{
	const int saved = errno;
	const uint32_t id = process_id(f), tid = call_tid(id);
	struct urxe_call *c = call_take(f, id, tid);

	errno = saved;
	if (!c)
		return NULL;
	/* it may be set if the previous owner died */
	store_relaxed(&c->kind, URXE_CALL_NONE);
	store_release(&c->tid, tid);
	store_relaxed(&c->context, context);
	store_relaxed(&c->object, object);
	store_relaxed(&c->since, clock_now());
	store_relaxed(&c->events, events);
	store_relaxed(&c->event, 0);
	store_release(&c->kind, kind);
	return c;
}

void call_end(void *call)
{
	struct urxe_call *c = call;

	if (!c)
		return;
	store_relaxed(&c->kind, URXE_CALL_NONE);
	store_release(&c->owner, 0);
}
