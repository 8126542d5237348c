/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Writing a trace (format.h).  A thread's ring is made when it records for the
 * first time; nobody waits for anybody.  errno stays as it is.  A child that is
 * made in another way than by fork(), and shares no memory, must not record.
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
 * Make the file at path anew, with rings of so many slots: 0 or -errno.  Those
 * who have the old one write on in it.  -EINVAL: there is something that is no
 * file.
 */
int trace_make(const char *path, uint32_t slots);

/*
 * Record in that file from now on; it is made if there is none.  0 or -errno.
 * Once in a process.
 */
int trace_open(const char *path);

/* Has this process opened one? */
bool trace_is_open(void);

/* The fabric that this process's QPNs are of. */
void trace_fabric(uint64_t fabric);

/* time is that of clock_now().  Who has more than TRACE_VALUES loses the rest.
 */
void trace_at(uint64_t time, enum trace_event what, uint32_t qpn,
	      const uint64_t *values, size_t n);

#define TRACE_LIST(...)     \
	(const uint64_t[])  \
	{                   \
		__VA_ARGS__ \
	}
/* trace(WHAT, qpn, values...) */
#define trace(what, qpn, ...)                                             \
	trace_at(clock_now(), TRACE_##what, qpn, TRACE_LIST(__VA_ARGS__), \
		 sizeof(TRACE_LIST(__VA_ARGS__)) / sizeof(uint64_t))

/* Without those at the end that are 0, but the first `least`. */
static inline size_t trace_used(const uint64_t *values, size_t n, size_t least)
{
	while (n > least && !values[n - 1])
		n--;
	return n;
}

/* trace(), but what is none at the end of the values takes no place. */
#define trace_short(what, least, qpn, ...)                                  \
	do {                                                                \
		const uint64_t list_[] = { __VA_ARGS__ };                   \
                                                                            \
		trace_at(clock_now(), TRACE_##what, qpn, list_,             \
			 trace_used(list_, sizeof(list_) / sizeof(*list_),  \
				    least));                                \
	} while (0)

/* A text, as values: eight bytes each, the last ones 0. */
void trace_text(enum trace_event what, uint32_t qpn, const char *text);
