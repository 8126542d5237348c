// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The event tag table of the process: from the tag in an event record to the
 * address of the CQ, QP or SRQ (shared/event_tag.h).
 *
 * The ioctl wrapper (wrap/fd.c) adds and removes objects for the provider.
 * The read wrapper (wrap/read.c) translates the records that libibverbs
 * reads.  A mutex protects the table.  fork(2) takes the mutex, so that the
 * child has a consistent copy of the table.
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "event.h"
#include "shim.h"

/*
 * An entry of the table.  A tag is a serial number (32) << 32 | index of the
 * entry (32).  The serial number is never 0, and distinguishes the tag from
 * earlier tags of the same entry.
 */
struct watched {
	uint64_t tag, address; /* tag 0: the entry is free */
	uint32_t kind; /* enum event_kind */
	uint32_t read[2]; /* numbers of completion and async events read */
};

_Atomic bool event_used;

static struct {
	pthread_mutex_t lock;
	struct watched *entry;
	uint32_t room; /* number of entries */
	uint32_t last_place; /* index of the entry that was allocated last */
	uint32_t last_number; /* the last serial number */
} tags = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void table_lock(void)
{
	pthread_mutex_lock(&tags.lock);
}

static void table_unlock(void)
{
	pthread_mutex_unlock(&tags.lock);
}

/*
 * Double the table, or create it.  False: no memory.  The caller holds the
 * lock, as for table_take() and table_find().
 */
static bool table_grow(void)
{
	uint32_t n = tags.room ? 2 * tags.room : 64;
	struct watched *t = realloc(tags.entry, n * sizeof(*t));

	if (!t)
		return false;
	memset(t + tags.room, 0, (n - tags.room) * sizeof(*t));
	if (!tags.room) { /* once: a forked child inherits the table */
		pthread_atfork(table_lock, table_unlock, table_unlock);
		tags.last_number = (uint32_t)clock_now();
	}
	tags.entry = t;
	tags.room = n;
	store_release(&event_used, true);
	return true;
}

/*
 * Return a free entry, or NULL if there is no memory.  The search is
 * round-robin, so that an entry is not reused soon.
 */
static struct watched *table_take(void)
{
	uint32_t i;

	for (i = 0; i < tags.room; i++) {
		tags.last_place = (tags.last_place + 1) % tags.room;
		if (!tags.entry[tags.last_place].tag)
			return &tags.entry[tags.last_place];
	}
	tags.last_place = tags.room;
	return table_grow() ? &tags.entry[tags.last_place] : NULL;
}

static struct watched *table_find(uint64_t tag)
{
	uint32_t place = (uint32_t)tag;

	return tag && place < tags.room && tags.entry[place].tag == tag ?
		       &tags.entry[place] :
		       NULL;
}

int event_element_add(struct event_element *e)
{
	struct watched *w;

	table_lock();
	w = table_take();
	if (w) {
		if (!++tags.last_number)
			tags.last_number++;
		e->tag = (uint64_t)tags.last_number << 32 |
			 (uint32_t)(w - tags.entry);
		*w = (struct watched){ .tag = e->tag,
				       .address = e->address,
				       .kind = e->kind };
	}
	table_unlock();
	return w ? 0 : -ENOMEM;
}

int event_element_remove(struct event_element *e)
{
	struct watched *w;

	table_lock();
	w = table_find(e->tag);
	if (w) {
		e->comp_read = w->read[0];
		e->async_read = w->read[1];
		w->tag = 0;
	}
	table_unlock();
	return w ? 0 : -ENOENT;
}

uint64_t event_channel(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_mode == EVENT_FIFO_MODE &&
			       shim_has_file(&st) ?
		       st.st_ino :
		       0;
}

bool event_translate(void *record, size_t len)
{
	const bool async = len == EVENT_ASYNC_SIZE;
	int kind = EVENT_CQ;
	struct watched *w;
	uint64_t tag;
	uint32_t type;

	memcpy(&tag, record, sizeof(tag));
	if (async) {
		memcpy(&type, (char *)record + sizeof(tag), sizeof(type));
		kind = event_async_kind(type);
		if (kind <= 0)
			return !kind;
	}
	table_lock();
	w = table_find(tag);
	if (w && w->kind == (uint32_t)kind) {
		w->read[async]++;
		memcpy(record, &w->address, sizeof(w->address));
	} else {
		w = NULL;
	}
	table_unlock();
	return w;
}
