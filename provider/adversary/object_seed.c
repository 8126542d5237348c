// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Table of the objects that the adversary knows; object_seed.h describes it. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "object_seed.h"

#define BUCKETS 1024

static struct object_seed *_Atomic bucket[BUCKETS];
static _Atomic uint64_t made[OBJECT_KINDS];

static struct object_seed *_Atomic *object_seed_bucket(const void *object)
{
	return &bucket[random_mix((uintptr_t)object) % BUCKETS];
}

/* Initialize @m with the seed of the next object of its kind. */
static void object_seed_begin(const struct adversary *a, struct object_seed *m)
{
	struct random_stream c = random_part(a->random, m->kind);
	int i;

	c = random_part(c, fetch_add_relaxed(&made[m->kind], 1));
	for (i = 0; i < ADV_OPTIONS; i++)
		store_relaxed(&m->decisions[i], 0);
	store_relaxed(&m->key, c.key);
}

static struct object_seed *object_seed_add(const struct adversary *a,
					   enum object_kind kind,
					   const void *object)
{
	struct object_seed *_Atomic *head = object_seed_bucket(object);
	struct object_seed *m, *first = load_acquire(head);
	int saved = errno;

	m = calloc(1, sizeof(*m));
	errno = saved;
	if (!m)
		return NULL;
	m->kind = kind;
	m->object = object;
	object_seed_begin(a, m);
	do
		m->next = first;
	while (!cas_acq_rel(head, &first, m));
	return m;
}

static struct object_seed *object_seed_lookup(enum object_kind kind,
					      const void *object)
{
	struct object_seed *m = load_acquire(object_seed_bucket(object));

	while (m && (m->object != object || m->kind != kind))
		m = m->next;
	return m;
}

struct object_seed *object_seed_find(const struct adversary *a,
				     enum object_kind kind, const void *object)
{
	struct object_seed *m = object_seed_lookup(kind, object);

	return m ? m : object_seed_add(a, kind, object);
}

void object_seed_new(const struct adversary *a, enum object_kind kind,
		     const void *object)
{
	struct object_seed *m = object_seed_lookup(kind, object);

	if (m)
		object_seed_begin(a, m);
	else
		object_seed_add(a, kind, object);
}

uint64_t object_seed_delay(const struct object_seed *m,
			   enum adversary_option option, uint64_t nth)
{
	return random_ns(object_seed_stream(m), ADV_OPTIONS + option, nth, 5);
}

void object_seed_sleep(const struct object_seed *m,
		       enum adversary_option option, uint64_t nth)
{
	struct timespec t = { .tv_nsec =
				      (long)object_seed_delay(m, option, nth) };
	int saved = errno;

	nanosleep(&t, NULL);
	errno = saved;
}
