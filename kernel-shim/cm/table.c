// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The tables of the connection manager: their file, lock and entries. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cm.h"

#define GROW 64 /* entries that get memory at a time */

/* Memory for [offset, offset + len): after this no SIGBUS. */
static int table_reserve(struct urxe_fabric *f, off_t offset, off_t len)
{
	int fd, ret;

	fd = openat(f->dirfd, "cm", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = posix_fallocate(fd, offset, len);
	close(fd);
	return -ret;
}

static int table_init(struct urxe_fabric *f, int fd)
{
	const size_t size = offsetof(struct cm_table, chan);
	struct cm_table *t;
	int ret;

	if (mkdirat(f->dirfd, "cm.d", 0700) && errno != EEXIST)
		return -errno;
	ret = posix_fallocate(fd, 0, size);
	if (ret || ftruncate(fd, sizeof(*t)))
		return ret ? -ret : -errno;
	t = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (t == MAP_FAILED)
		return -errno;
	memcpy(t->magic, CM_MAGIC, sizeof(t->magic));
	t->version = urxe_layout_version;
	t->size = sizeof(*t);
	robust_init(&t->lock);
	munmap(t, size);
	return 0;
}

static int table_map(struct urxe_fabric *f, struct cm_table **out)
{
	struct cm_table *t;
	struct stat st;
	int fd, ret = -EPROTO;

	fd = openat(f->dirfd, "cm", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_size != (off_t)sizeof(*t))
		goto out_close;
	t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (t == MAP_FAILED) {
		ret = -errno;
		goto out_close;
	}
	if (memcmp(t->magic, CM_MAGIC, sizeof(t->magic)) ||
	    t->version != urxe_layout_version || t->size != sizeof(*t)) {
		munmap(t, sizeof(*t));
		goto out_close;
	}
	*out = t;
	ret = 0;
out_close:
	close(fd);
	return ret;
}

int cm_map(struct urxe_fabric *f, struct cm_table **out)
{
	int ret = table_map(f, out);

	if (ret != -ENOENT)
		return ret;
	ret = fabric_make_file(f, "cm", table_init);
	return ret ? ret : table_map(f, out);
}

void cm_lock(struct cm *cm)
{
	if (!robust_lock(&cm->t->lock))
		return;
	cm_recover(cm);
}

void cm_unlock(struct cm *cm)
{
	robust_unlock(&cm->t->lock);
}

void cm_recover(struct cm *cm)
{
	cm->t->id_low = cm->t->chan_low = 0;
	cm->t->dying = 1; /* perhaps */
	cm_event_rebuild(cm);
	cm_conn_recover(cm);
}

void cm_settle(struct cm *cm)
{
	if (cm->t->due)
		cm_event_catch_up(cm);
	cm_chan_reap(cm);
}

struct cm_ref cm_ref_to(struct cm *cm, const struct cm_id *id)
{
	return (struct cm_ref){ cm_id_ref(cm, id), id->gen };
}

struct cm_id *cm_deref(struct cm *cm, struct cm_ref ref)
{
	struct cm_id *id = cm_id_at(cm, ref.id);

	return id && id->gen == ref.gen ? id : NULL;
}

/* Give memory to the entries of a table up to and with index. */
static bool table_grow(struct cm *cm, uint32_t *high, uint32_t index,
		       uint32_t max, const void *table, size_t size)
{
	off_t start = (off_t)((const char *)table - (const char *)cm->t);
	uint32_t n;

	if (index >= max)
		return false;
	if (index < *high)
		return true;
	n = cm_min(max - *high, GROW);
	if (table_reserve(cm->f, start + (off_t)(*high * size),
			  (off_t)(n * size)))
		return false;
	*high += n;
	return true;
}

struct cm_chan *cm_chan_new(struct cm *cm)
{
	struct cm_table *t = cm->t;
	struct cm_chan *c;
	uint32_t i, gen;

	for (i = cm_min(t->chan_low, cm_chans(cm));
	     i < cm_chans(cm) && t->chan[i].state != CM_CHAN_FREE; i++)
		;
	if (!table_grow(cm, &t->chan_high, i, CM_MAX_CHAN, t->chan,
			sizeof(*t->chan)))
		return NULL;
	c = &t->chan[i];
	gen = c->gen + 1;
	memset(c, 0, sizeof(*c));
	c->gen = gen;
	t->chan_low = i + 1;
	return c;
}

void cm_chan_free(struct cm *cm, struct cm_chan *c)
{
	c->state = CM_CHAN_FREE;
	cm->t->chan_low = cm_min(cm->t->chan_low, cm_chan_ref(cm, c) - 1);
}

/* The lowest one that is free, as the kernel chooses. */
struct cm_id *cm_id_new(struct cm *cm, struct cm_chan *c)
{
	struct cm_table *t = cm->t;
	struct cm_id *id;
	uint32_t i, gen;

	for (i = cm_min(t->id_low, cm_ids(cm)); i < cm_ids(cm) && t->id[i].used;
	     i++)
		;
	if (!table_grow(cm, &t->id_high, i, CM_MAX_ID, t->id, sizeof(*t->id)))
		return NULL;
	id = &t->id[i];
	gen = id->gen + 1;
	memset(id, 0, sizeof(*id));
	id->gen = gen;
	id->chan = cm_chan_ref(cm, c);
	id->used = 1;
	t->id_low = i + 1;
	return id;
}

void cm_id_free(struct cm *cm, struct cm_id *id)
{
	id->used = 0;
	cm->t->id_low = cm_min(cm->t->id_low, cm_id_ref(cm, id) - 1);
}

struct cm_event *cm_event_alloc(struct cm *cm)
{
	struct cm_table *t = cm->t;
	struct cm_event *e;
	const uint32_t end = cm_events(cm);
	uint32_t n, i = t->event_next;

	for (n = 0; n < end; n++, i++) {
		if (i >= end)
			i = 0;
		if (!t->event[i].used)
			break;
	}
	if (n == end)
		i = end;
	if (!table_grow(cm, &t->event_high, i, CM_MAX_EVENT, t->event,
			sizeof(*t->event)))
		return NULL;
	e = &t->event[i];
	memset(e, 0, sizeof(*e));
	t->event_next = i + 1;
	return e;
}

struct cm_mc *cm_mc_new(struct cm *cm)
{
	struct cm_table *t = cm->t;
	uint32_t i;

	for (i = 0; i < cm_mcs(cm) && t->mc[i].used; i++)
		;
	if (!table_grow(cm, &t->mc_high, i, CM_MAX_MC, t->mc, sizeof(*t->mc)))
		return NULL;
	memset(&t->mc[i], 0, sizeof(t->mc[i]));
	t->mc[i].used = 1;
	return &t->mc[i];
}
