// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "flight_table.h"

bool flight_table_add(struct flight_table *t, const struct span *span,
		      uint32_t key, struct memory *of)
{
	struct flight_entry *entry;
	size_t room;

	if (t->n == t->room) {
		room = t->room ? 2 * t->room : 64;
		entry = realloc(t->entry, room * sizeof(*entry));
		if (!entry)
			return false;
		t->entry = entry;
		t->room = room;
	}
	t->entry[t->n++] = (struct flight_entry){ *span, of, key };
	return true;
}

void flight_table_remove(struct flight_table *t, const struct memory *of)
{
	size_t i;

	for (i = 0; i < t->n;)
		if (t->entry[i].of == of)
			t->entry[i] = t->entry[--t->n];
		else
			i++;
}
