// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Detection of memory that is unmapped while it is registered; unmapped.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/plural.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/map_watch.h"
#include "engine/mem/vma.h"
#include "unmapped.h"

/* A call that took memory away, and an MR with bytes in it. */
struct gone {
	const char *call;
	uint64_t at, len, bytes; /* of the call; bytes of the MR in it */
	struct shadow_mr mr;
	struct stack stack;
};

/* Begin and end of this library, defined by the linker. */
extern internal const char __ehdr_start[], _end[];

#define MAX_GONE 32 /* records that wait; further ones are dropped */

static struct {
	pthread_mutex_t lock;
	struct shadow_mr *first; /* list of watched MRs */
	_Atomic uint64_t moment; /* number of MRs watched so far */
	struct gone noted[MAX_GONE];
	_Atomic uint32_t noted_n;
	/*
	 * of the preload library, or NULL: did the program ask for fork
	 * support?
	 */
	bool (*fork_is_known)(void);
} unmapped = { .lock = PTHREAD_MUTEX_INITIALIZER };
/*
 * unmapped_gone() does nothing in this thread.  Either the thread holds the
 * lock, and a signal handler that interrupts it would deadlock.  Or the
 * thread is in fork(2), and in the child the lock may be held by a thread
 * that does not exist there.
 */
static thread_own bool busy;

static void unmapped_lock(void)
{
	busy = true;
	pthread_mutex_lock(&unmapped.lock);
}

static void unmapped_unlock(void)
{
	pthread_mutex_unlock(&unmapped.lock);
	busy = false;
}

static void unlink_mr(struct shadow_mr *m)
{
	if (!m->watch_pprev)
		return;
	*m->watch_pprev = m->watch_next;
	if (m->watch_next)
		m->watch_next->watch_pprev = m->watch_pprev;
	m->watch_pprev = NULL;
}

/*
 * Is the MR at a known address, and pinned?  With IBV_ACCESS_ON_DEMAND the
 * device follows changes of the mappings.
 */
static bool is_pinned(const struct shadow_mr *m)
{
	return m->addr && m->length && !m->s.inherited &&
	       !(m->access & IBV_ACCESS_ON_DEMAND);
}

void unmapped_watch(struct shadow_mr *m)
{
	if (!is_pinned(m))
		return;
	unmapped_lock();
	unlink_mr(m);
	m->watched = fetch_add_relaxed(&unmapped.moment, 1) + 1;
	m->watch_next = unmapped.first;
	if (unmapped.first)
		unmapped.first->watch_pprev = &m->watch_next;
	m->watch_pprev = &unmapped.first;
	unmapped.first = m;
	unmapped_unlock();
}

void unmapped_forget(struct shadow_mr *m)
{
	unmapped_lock();
	unlink_mr(m);
	unmapped_unlock();
}

/* ------------------------------------------------------- reported calls */

static uint64_t unmapped_now(void)
{
	return load_relaxed(&unmapped.moment);
}

/* Return the number of bytes of the MR in [at, end). */
static uint64_t bytes_of(const struct shadow_mr *m, uint64_t at, uint64_t end)
{
	const uint64_t m_end = m->addr + m->length;
	const uint64_t from = at > m->addr ? at : m->addr;
	const uint64_t to = end < m_end ? end : m_end;

	return from < to ? to - from : 0;
}

/* Record the MR, and stop watching it: each MR is reported once. */
static void note(struct shadow_mr *m, const struct gone *of, uint64_t bytes)
{
	const uint32_t n = load_relaxed(&unmapped.noted_n);
	struct gone *g = &unmapped.noted[n];

	unlink_mr(m);
	if (n == MAX_GONE)
		return;
	*g = *of;
	g->bytes = bytes;
	/*
	 * only what shadow_name() reads; the links of lists may change
	 * meanwhile, because referee_lock() need not be held here
	 */
	g->mr.s.type = SHADOW_MR;
	g->mr.addr = m->addr;
	g->mr.length = m->length;
	g->mr.lkey = m->lkey;
	stack_take(&g->stack);
	store_relaxed(&unmapped.noted_n, n + 1);
}

static bool is_ours(const void *caller)
{
	const char *p = caller;

	return p >= __ehdr_start && p < _end;
}

static void unmapped_gone(const char *call, const void *at, size_t len,
			  uint64_t since, const void *caller)
{
	const uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	const struct gone g = { .call = call, .at = (uintptr_t)at, .len = len };
	const uint64_t end = (g.at + len + mask) & ~mask;
	struct shadow_mr *m, *next;
	int saved = errno;
	uint64_t bytes;

	/* page adoption replaces pages of the program; not a finding */
	if (busy || is_ours(caller))
		return;
	unmapped_lock();
	for (m = unmapped.first; m; m = next) {
		next = m->watch_next;
		bytes = bytes_of(m, g.at, end);
		/* a newer MR is in a mapping that was made after the call */
		if (bytes && m->watched <= since)
			note(m, &g, bytes);
	}
	unmapped_unlock();
	errno = saved;
}

/* ------------------------------------------------------- reports */

/*
 * Do the pages stay the same?  MADV_DONTNEED of a shared mapping does not
 * replace the pages: they are those of the file.
 */
static bool is_still_mapped(const struct gone *g)
{
	struct vma file;

	return !strcmp(g->call, "madvise") &&
	       !vma_check(g->at, g->len, false, &file) && file.shared;
}

static void gone_report(struct gone *g)
{
	char name[FINDING_NAME];
	const struct finding f = {
		.rule = RULE_mr_unmapped,
		.object = shadow_name(&g->mr.s, name),
		.at = &g->stack,
		.at_is = "unmapped",
	};

	if (is_still_mapped(g))
		return;
	finding_report(
		&f,
		"%s of %llu bytes at 0x%llx removed %llu byte%s of the MR while it was registered",
		g->call, (unsigned long long)g->len, (unsigned long long)g->at,
		(unsigned long long)g->bytes, plural(g->bytes));
}

static bool noted_take(struct gone *g)
{
	uint32_t n;

	unmapped_lock();
	n = load_relaxed(&unmapped.noted_n);
	if (n) {
		*g = unmapped.noted[0];
		memmove(unmapped.noted, unmapped.noted + 1,
			(n - 1) * sizeof(*unmapped.noted));
		store_relaxed(&unmapped.noted_n, n - 1);
	}
	unmapped_unlock();
	return n;
}

void unmapped_report(void)
{
	int saved = errno;
	struct gone g;

	while (load_relaxed(&unmapped.noted_n) && noted_take(&g))
		gone_report(&g);
	errno = saved;
}

/* Find a watched MR in a private mapping (copy-on-write after a fork). */
static bool forked_mr(struct shadow_mr *out)
{
	const struct shadow_mr *m;
	struct vma file;

	unmapped_lock();
	for (m = unmapped.first; m; m = m->watch_next)
		if (!vma_check(m->addr, m->length, false, &file) &&
		    !file.shared) {
			*out = *m;
			break;
		}
	unmapped_unlock();
	return m;
}

void unmapped_before_fork(void)
{
	busy = true;
}

void unmapped_after_fork_parent(void)
{
	struct shadow_mr m;
	char name[FINDING_NAME];
	struct finding f = { .rule = RULE_fork_unprepared, .here = true };

	busy = false;
	if (!unmapped.fork_is_known || unmapped.fork_is_known() ||
	    !forked_mr(&m))
		return;
	f.object = shadow_name(&m.s, name);
	finding_report(
		&f,
		"the process forked, but called neither ibv_fork_init nor ibv_is_fork_initialized");
}

void unmapped_after_fork_child(void)
{
	struct shadow *s;

	/*
	 * another thread may have been changing the list during the fork, so
	 * it is discarded
	 */
	pthread_mutex_init(&unmapped.lock, NULL);
	unmapped.first = NULL;
	for (s = shadow_first(); s; s = s->next)
		if (s->type == SHADOW_MR)
			to_shadow_mr(s)->watch_pprev = NULL;
	store_relaxed(&unmapped.noted_n, 0); /* the parent reports them */
	busy = false;
}

void unmapped_init(void)
{
	static const struct map_watch watch = { .now = unmapped_now,
						.gone = unmapped_gone };
	void (*watch_maps)(const struct map_watch *w);

	*(void **)&unmapped.fork_is_known =
		dlsym(RTLD_DEFAULT, "urxe_fork_is_known");
	*(void **)&watch_maps = dlsym(RTLD_DEFAULT, "urxe_watch_maps");
	if (watch_maps)
		watch_maps(&watch);
}
