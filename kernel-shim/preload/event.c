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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched *table;
/*
 * Number of entries; index of the entry that was allocated last; the last
 * serial number.
 */
static uint32_t room, next_place, next_number;

static void table_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void table_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/*
 * Double the table, or create it.  False: no memory.  The caller holds the
 * lock, as for table_take() and table_find().
 */
static bool table_grow(void)
{
	uint32_t n = room ? 2 * room : 64;
	struct watched *t = realloc(table, n * sizeof(*t));

	if (!t)
		return false;
	memset(t + room, 0, (n - room) * sizeof(*t));
	if (!room) { /* once: a forked child inherits the table */
		pthread_atfork(table_lock, table_unlock, table_unlock);
		next_number = (uint32_t)clock_now();
	}
	table = t;
	room = n;
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

	for (i = 0; i < room; i++) {
		next_place = (next_place + 1) % room;
		if (!table[next_place].tag)
			return &table[next_place];
	}
	next_place = room;
	return table_grow() ? &table[next_place] : NULL;
}

static struct watched *table_find(uint64_t tag)
{
	uint32_t place = (uint32_t)tag;

	return tag && place < room && table[place].tag == tag ? &table[place] :
								NULL;
}

int event_element_add(struct event_element *e)
{
	struct watched *w;

	table_lock();
	w = table_take();
	if (w) {
		if (!++next_number)
			next_number++;
		e->tag = (uint64_t)next_number << 32 | (uint32_t)(w - table);
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
