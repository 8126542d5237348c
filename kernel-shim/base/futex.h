/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An event count (Reed and Kanodia 1979; ck_ec.h of Concurrency Kit): sleep
 * until there is work, with wakeups from this process or from another that
 * maps the memory (shared futex).
 *
 *	sleeper				waker
 *	seen = event_count_read()	publish the work
 *	no work?			event_count_ring():
 *	event_count_wait(seen):		  count++
 *	  sleepers++			  sleepers != 0?  FUTEX_WAKE all
 *	  count == seen?  sleep
 *	  sleepers--
 *
 * Sleepers are the service threads, bouncers, requesters that wait for a
 * bouncer, and threads that wait for CM events.  Any thread may be a waker.
 *
 * No wakeup is lost.  The accesses of count and sleepers, except the last
 * decrement, are seq_cst (Dekker).  If sleepers++ precedes the waker's load
 * of sleepers, the waker calls the kernel, and the sleeper is woken or the
 * kernel finds that count has changed.  Otherwise count++ precedes the
 * sleeper's load of count, and the sleeper does not sleep.  If count++
 * precedes event_count_read(), the sleeper sees the work.
 *
 * A sleeper that is killed leaves sleepers too high.  Each wakeup then costs
 * an unnecessary system call, until event_count_init().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "atomic.h"

struct event_count {
	_Atomic uint32_t count; /* futex */
	_Atomic uint32_t sleepers;
};

#define FUTEX_FOR_EVER UINT64_MAX
#define EVENT_COUNT_FOR_EVER FUTEX_FOR_EVER
/* Long, but finite, in case a damaged `sleepers` loses a wakeup. */
#define EVENT_COUNT_NAP 4000000000ull

/*
 * A futex word whose writers call FUTEX_WAKE but ring no event count, and the
 * value that was read.
 */
struct futex_word {
	_Atomic uint32_t *word;
	uint32_t seen;
};
#define FUTEX_WORDS_MAX 127 /* besides the count of the event count */

/*
 * Sleep while *word == @seen, at most @ns, until a wakeup.  Return 0, also if
 * nothing happened, or -EINTR if a signal interrupted the sleep.  errno is
 * kept.
 */
int futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t ns);
void futex_wake(_Atomic uint32_t *word, int n);

/* Reset sleepers.  No thread that lives sleeps on @e. */
static inline void event_count_init(struct event_count *e)
{
	store_relaxed(&e->sleepers, 0);
}

static inline uint32_t event_count_read(const struct event_count *e)
{
	return load_seq_cst(&e->count);
}

/*
 * Sleep for at most @ns while count == @seen.  Return 0, possibly without a
 * wakeup, or -EINTR if a signal interrupted the sleep.  Without a time limit
 * the kernel restarts the sleep after a signal whose handler has SA_RESTART.
 */
int event_count_wait(struct event_count *e, uint32_t seen, uint64_t ns);
void event_count_ring(struct event_count *e);
/*
 * The same, and return also if one of @n words changes and its writer calls
 * FUTEX_WAKE.  @n is at most FUTEX_WORDS_MAX.  If n > 0, @ns must not be
 * FUTEX_FOR_EVER, and event_count_takes_words() has returned true, since
 * futex_waitv(2) is needed.  Call that each time: a program may forbid itself
 * the system call later (seccomp).
 */
void event_count_wait_words(struct event_count *e, uint32_t seen,
			    const struct futex_word *words, uint32_t n,
			    uint64_t ns);
bool event_count_takes_words(void);
