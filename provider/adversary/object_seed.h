/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Table of the objects that the adversary knows: the random seed of each
 * object, and for each option how many decisions were made for it. The seed
 * is a function of the process's seed, the kind and the ordinal of the object
 * among those of its kind.
 *
 * An object is identified by its kind and its address. If an object is
 * created at the address of a destroyed one, object_seed_new() reinitializes
 * the entry. Callers are the interposers of the adversary, in any thread,
 * without a lock.
 *
 * The table is a lock-free hash table. An entry is added by compare-and-swap
 * at the head of its bucket and is never removed, so there is neither ABA nor
 * a lock that fork() could leave taken. The swap releases the new entry, and
 * look-ups load the head with acquire; after that `next`, `object` and `kind`
 * do not change. `key` and `decisions` are relaxed: the program itself must
 * synchronize the creation of an object with its first use. If two threads
 * look up an unknown object at once, it may get two entries, of which later
 * look-ups find the newer one.
 */
#pragma once

#include "base/atomic.h"
#include "chaos/adversary.h"

enum object_kind {
	OBJECT_CONTEXT,
	OBJECT_CQ,
	OBJECT_QP,
	OBJECT_SRQ,
	OBJECT_KINDS
};

struct object_seed {
	struct object_seed *next;
	const void *object;
	enum object_kind kind;
	_Atomic uint64_t key; /* a struct random_stream */
	/* decisions made so far, by option */
	_Atomic uint64_t decisions[ADV_OPTIONS];
};

/* Register @object, which was just created, or reset its entry. */
void object_seed_new(const struct adversary *a, enum object_kind kind,
		     const void *object);
/*
 * Return the entry of @object, which is added if there is none; NULL if there
 * is no memory.
 */
struct object_seed *object_seed_find(const struct adversary *a,
				     enum object_kind kind, const void *object);

static inline struct random_stream
object_seed_stream(const struct object_seed *m)
{
	return (struct random_stream){ load_relaxed(&m->key) };
}

/*
 * Make the next decision on @m: return whether the option @option applies.
 * Store the number of this decision, from 0, in *nth unless @nth is NULL. If
 * @m is NULL, the option does not apply.
 */
static inline bool object_seed_decide(const struct adversary *a,
				      struct object_seed *m,
				      enum adversary_option option,
				      uint64_t *nth)
{
	uint64_t decision = m ? fetch_add_relaxed(&m->decisions[option], 1) : 0;

	if (nth)
		*nth = decision;
	return m &&
	       adversary_applies(a, object_seed_stream(m), option, decision);
}

/* Return the delay of decision @nth, 0.1 ms to 3.2 ms, in ns. */
uint64_t object_seed_delay(const struct object_seed *m,
			   enum adversary_option option, uint64_t nth);
/* Sleep for object_seed_delay(). errno is kept. */
void object_seed_sleep(const struct object_seed *m,
		       enum adversary_option option, uint64_t nth);
