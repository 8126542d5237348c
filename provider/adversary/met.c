// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Table of the objects that the adversary knows; met.h describes it. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "met.h"

#define BUCKETS 1024

static struct met *_Atomic bucket[BUCKETS];
static _Atomic uint64_t made[MET_KINDS];

static struct met *_Atomic *met_bucket(const void *object)
{
	return &bucket[chance_mix((uintptr_t)object) % BUCKETS];
}

/* Initialize @m with the seed of the next object of its kind. */
static void met_begin(const struct adversary *a, struct met *m)
{
	struct chance c = chance_part(a->chance, m->kind);
	int i;

	c = chance_part(c, fetch_add_relaxed(&made[m->kind], 1));
	for (i = 0; i < KNOBS; i++)
		store_relaxed(&m->turns[i], 0);
	store_relaxed(&m->key, c.key);
}

static struct met *met_add(const struct adversary *a, enum met_kind kind,
			   const void *object)
{
	struct met *_Atomic *head = met_bucket(object);
	struct met *m, *first = load_acquire(head);
	int saved = errno;

	m = calloc(1, sizeof(*m));
	errno = saved;
	if (!m)
		return NULL;
	m->kind = kind;
	m->object = object;
	met_begin(a, m);
	do
		m->next = first;
	while (!cas_acq_rel(head, &first, m));
	return m;
}

static struct met *met_look(enum met_kind kind, const void *object)
{
	struct met *m = load_acquire(met_bucket(object));

	while (m && (m->object != object || m->kind != kind))
		m = m->next;
	return m;
}

struct met *met_find(const struct adversary *a, enum met_kind kind,
		     const void *object)
{
	struct met *m = met_look(kind, object);

	return m ? m : met_add(a, kind, object);
}

void met_new(const struct adversary *a, enum met_kind kind, const void *object)
{
	struct met *m = met_look(kind, object);

	if (m)
		met_begin(a, m);
	else
		met_add(a, kind, object);
}

uint64_t met_while(const struct met *m, enum adversary_knob knob, uint64_t nth)
{
	return chance_ns(met_chance(m), KNOBS + knob, nth, 5);
}

void met_linger(const struct met *m, enum adversary_knob knob, uint64_t nth)
{
	struct timespec t = { .tv_nsec = (long)met_while(m, knob, nth) };
	int saved = errno;

	nanosleep(&t, NULL);
	errno = saved;
}
