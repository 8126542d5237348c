/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An event count: sleep until there is something to do, in this process or in
 * another that shares the memory.
 *
 *	sleeper				ringer
 *	seen = event_count_read()	makes something to do
 *	nothing to do?			event_count_ring():
 *	event_count_wait(seen):		  count++
 *	  sleepers++			  sleepers?  wake them
 *	  count == seen?  sleep
 *	  sleepers--
 *
 * No ring is lost.  The four accesses of count and sleepers between reading
 * and waking are seq_cst.  If in their single order the sleeper's ++ is before
 * the ringer's look, it is woken, or the kernel finds that count has changed;
 * else count++ was before, and the sleeper finds it itself.  And count++
 * before event_count_read() means that what is to be done is seen.
 *
 * A sleeper that is killed leaves sleepers too high: rings cost a system call
 * more, until event_count_init().
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
/* For ever, but a ring that is lost because sleepers was damaged is found. */
#define EVENT_COUNT_NAP 4000000000ull

/* A word that somebody may change who rings no event count. */
struct futex_word {
	_Atomic uint32_t *word;
	uint32_t seen;
};
#define FUTEX_WORDS_MAX 127 /* besides an event count's */

/*
 * Sleep while *word is seen, at most ns long, or until it is woken; -EINTR if
 * by a signal.
 */
int futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t ns);
void futex_wake(_Atomic uint32_t *word, int n);

/* Nobody sleeps: whoever did is dead. */
static inline void event_count_init(struct event_count *e)
{
	store_relaxed(&e->sleepers, 0);
}

static inline uint32_t event_count_read(const struct event_count *e)
{
	return load_seq_cst(&e->count);
}

/*
 * At most ns long.  Returns early without a reason, too; -EINTR if a signal
 * was the reason.  Without a limit the kernel goes on after a signal whose
 * handler has SA_RESTART.
 */
int event_count_wait(struct event_count *e, uint32_t seen, uint64_t ns);
void event_count_ring(struct event_count *e);
/*
 * The same, and it ends when one of n words is not what was seen, and who
 * changed it woke us.  If n > 0, event_count_takes_words() was asked: the
 * system must have futex_waitv(2).  Ask each time: a program may forbid it to
 * itself (seccomp).
 */
void event_count_wait_words(struct event_count *e, uint32_t seen,
			    const struct futex_word *words, uint32_t n,
			    uint64_t ns);
bool event_count_takes_words(void);
