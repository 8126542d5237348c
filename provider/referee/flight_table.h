/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which bytes WRs in flight read or write: looked through from end to end. */
#pragma once

#include "span.h"

struct memory;

struct flight_entry {
	struct span span;
	struct memory *of;
	uint32_t key; /* an rkey whose bytes they are; 0: this process's */
};

struct flight_table {
	struct flight_entry *entry;
	size_t n, room;
};

/* False: there is no memory. */
bool flight_table_add(struct flight_table *t, const struct span *span,
		      uint32_t key, struct memory *of);
/* All that are of it. */
void flight_table_remove(struct flight_table *t, const struct memory *of);

/* The first from entry i on that meets the span; NULL: none. */
static inline struct flight_entry *
flight_table_meet(const struct flight_table *t, const struct span *span,
		  uint32_t key, size_t i)
{
	for (; i < t->n; i++)
		if (span_meets(&t->entry[i].span, span) &&
		    t->entry[i].key == key)
			return &t->entry[i];
	return NULL;
}
