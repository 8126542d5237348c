// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Hierarchical spatial hash, with chained buckets; flight_table.h. */
#include <stdlib.h>
#include <string.h>

#include "flight_table.h"

#define BUCKETS_FIRST 64

/* Return the level of a span: the smallest k such that 2^k >= length. */
static unsigned int level_of(const struct span *s)
{
	uint64_t len = s->end - s->at;

	return len <= 1 ? 0 : 64u - (unsigned int)__builtin_clzll(len - 1);
}

static size_t bucket_of(const struct flight_table *t, unsigned int level,
			uint64_t block)
{
	/* Fibonacci hashing */
	uint64_t h = (block * FLIGHT_LEVELS + level) * 0x9e3779b97f4a7c15ull;

	return (size_t)(h >> 32) & (t->buckets - 1);
}

static void entry_link(struct flight_table *t, struct flight_entry *e)
{
	struct flight_entry **b =
		&t->bucket[bucket_of(t, e->level, e->span.at >> e->level)];

	e->next = *b;
	*b = e;
}

/*
 * Double the number of buckets if there are as many entries.  False: there
 * are no buckets, and no memory for them.
 */
static bool table_grow(struct flight_table *t)
{
	struct flight_table new = *t;
	struct flight_entry *e, *next;
	size_t i;

	if (t->n < t->buckets)
		return true;
	new.buckets = t->buckets ? 2 * t->buckets : BUCKETS_FIRST;
	new.bucket = calloc(new.buckets, sizeof(*new.bucket));
	if (!new.bucket)
		return t->buckets; /* the chains become longer */
	for (i = 0; i < t->buckets; i++)
		for (e = t->bucket[i]; e; e = next) {
			next = e->next;
			entry_link(&new, e);
		}
	free(t->bucket);
	*t = new;
	return true;
}

bool flight_table_add(struct flight_table *t, const struct span *span,
		      uint32_t key, struct memory *of)
{
	unsigned int level = level_of(span);
	struct flight_entry *e;

	if (span->at == span->end)
		return true; /* an empty span overlaps nothing */
	if (level >= FLIGHT_LEVELS || !table_grow(t))
		return false;
	e = malloc(sizeof(*e));
	if (!e)
		return false;
	*e = (struct flight_entry){
		.span = *span, .of = of, .key = key, .level = (uint8_t)level
	};
	entry_link(t, e);
	t->n++;
	t->of_level[level]++;
	return true;
}

void flight_table_remove(struct flight_table *t, const struct span *span,
			 const struct memory *of)
{
	unsigned int level = level_of(span);
	struct flight_entry **p, *e;

	if (level >= FLIGHT_LEVELS || !t->buckets)
		return;
	p = &t->bucket[bucket_of(t, level, span->at >> level)];
	for (; (e = *p); p = &e->next) {
		if (e->of != of || e->span.at != span->at ||
		    e->span.end != span->end)
			continue;
		*p = e->next;
		free(e);
		t->n--;
		t->of_level[level]--;
		return;
	}
}

void flight_table_clear(struct flight_table *t)
{
	struct flight_entry *e, *next;
	size_t i;

	for (i = 0; i < t->buckets; i++)
		for (e = t->bucket[i]; e; e = next) {
			next = e->next;
			free(e);
		}
	free(t->bucket);
	memset(t, 0, sizeof(*t));
}

/* ------------------------------------------------------- lookup */

/*
 * Begin with the first level from `level` on that has entries.  If it has at
 * least as many blocks to visit as there are buckets, visit all buckets.
 */
static void flight_iter_level(struct flight_iter *l, unsigned int level)
{
	while (level < FLIGHT_LEVELS && !l->t->of_level[level])
		level++;
	l->level = level;
	if (level == FLIGHT_LEVELS)
		return;
	l->block = l->span.at >> level;
	l->block -= l->block > 0;
	l->last = (l->span.end - 1) >> level;
	l->all = l->last - l->block >= l->t->buckets;
	l->at = l->all ? 0 : bucket_of(l->t, level, l->block);
	l->e = l->t->bucket[l->at];
}

/* Advance to the next bucket.  False: there is none. */
static bool flight_iter_bucket(struct flight_iter *l)
{
	l->seen++;
	if (l->all ? ++l->at == l->t->buckets : l->block++ == l->last)
		flight_iter_level(l, l->level + 1);
	else if (!l->all)
		l->at = bucket_of(l->t, l->level, l->block);
	if (l->level == FLIGHT_LEVELS)
		return false;
	l->e = l->t->bucket[l->at];
	return true;
}

void flight_iter_begin(struct flight_iter *l, const struct flight_table *t,
		       const struct span *span, uint32_t key)
{
	*l = (struct flight_iter){ .t = t, .span = *span, .key = key };
	if (span->at == span->end)
		l->level = FLIGHT_LEVELS;
	else
		flight_iter_level(l, 0);
}

struct flight_entry *flight_iter_next(struct flight_iter *l)
{
	struct flight_entry *e;

	while (l->level < FLIGHT_LEVELS) {
		while ((e = l->e)) {
			l->e = e->next;
			l->seen++;
			/* a bucket has entries of other blocks, too */
			if (e->level == l->level && e->key == l->key &&
			    (l->all || e->span.at >> l->level == l->block) &&
			    span_overlaps(&e->span, &l->span))
				return e;
		}
		if (!flight_iter_bucket(l))
			break;
	}
	return NULL;
}
