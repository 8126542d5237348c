/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Writing a trace (format.h).  Callers are the recorder (provider/recorder),
 * the packet recorder (packet.h) and the preload library
 * (preload/ucma/trace.c), each in the thread whose events they record.  They
 * may hold locks, for example qp->lock.  `urxe run --trace` calls
 * trace_make().
 *
 * A ring is made when its thread records for the first time.  Recording takes
 * no lock and never waits for another thread.  If a ring cannot be made, the
 * events of the thread are lost; trace_file.lost counts such failures.  What
 * a signal handler records while its thread is recording is lost, too.
 * Functions that record keep errno.
 *
 * A child of fork(2) gets new rings (pthread_atfork(3)).  A child of another
 * system call that does not share the parent's memory (_Fork, clone without
 * CLONE_VM) must not record: it would be a second writer of the parent's
 * rings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "format.h"

enum trace_event {
#define EVENT(name, called, values) TRACE_##name,
#include "events.h"
#undef EVENT
	TRACE_EVENTS
};

/*
 * Create a trace file at path, with rings of up to `slots` slots, a power of
 * two from TRACE_MIN_SLOTS to TRACE_MAX_SLOTS.  An existing file is replaced
 * by rename(2): processes that have it open continue to write to their rings
 * in it, but cannot make or grow any.
 * Return 0 or -errno; -EINVAL if path exists and is not a regular file.
 */
int trace_make(const char *path, uint32_t slots);

/*
 * Record to the file at path from now on.  If it does not exist, create it
 * with TRACE_DEFAULT_SLOTS.  Return 0 or -errno; -EINVAL if the file is not a
 * trace of this version.  Call it once in a process, for each shared object
 * that is linked with this code, before another thread records.
 */
int trace_open(const char *path);

/* Return whether trace_open() has succeeded in this process. */
bool trace_is_open(void);

/*
 * Set the fabric of this process's QPNs, an inode.  It applies to rings that
 * are made later and to those of the calling thread.
 */
void trace_fabric(uint64_t fabric);

/*
 * Record an event that happened at `time` (clock_now()).  Values beyond
 * TRACE_VALUES are dropped.
 */
void trace_at(uint64_t time, enum trace_event what, uint32_t qpn,
	      const uint64_t *values, size_t n);

#define TRACE_LIST(...)     \
	(const uint64_t[])  \
	{                   \
		__VA_ARGS__ \
	}
/* Record event TRACE_WHAT now: trace(WHAT, qpn, values...). */
#define trace(what, qpn, ...)                                             \
	trace_at(clock_now(), TRACE_##what, qpn, TRACE_LIST(__VA_ARGS__), \
		 sizeof(TRACE_LIST(__VA_ARGS__)) / sizeof(uint64_t))

/* Return n without trailing values that are 0, but at least `least`. */
static inline size_t trace_used(const uint64_t *values, size_t n, size_t least)
{
	while (n > least && !values[n - 1])
		n--;
	return n;
}

/* Like trace(), but drop trailing values that are 0; keep `least`. */
#define trace_short(what, least, qpn, ...)                                  \
	do {                                                                \
		const uint64_t list_[] = { __VA_ARGS__ };                   \
                                                                            \
		trace_at(clock_now(), TRACE_##what, qpn, list_,             \
			 trace_used(list_, sizeof(list_) / sizeof(*list_),  \
				    least));                                \
	} while (0)

/* Record a text as values of eight bytes each, padded with zeros. */
void trace_text(enum trace_event what, uint32_t qpn, const char *text);
