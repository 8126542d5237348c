// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The tables of the connection manager: file, lock, allocation of entries.
 *
 * The file "cm" is sparse.  Memory for entries is reserved GROW entries at a
 * time (posix_fallocate), so that access to them cannot raise SIGBUS when the
 * file system is full.  The first word of an entry is nonzero while it is in
 * use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "cm.h"

#define GROW 64 /* entries for which memory is reserved at a time */

/* Reserve memory for [offset, offset + len) of the file.  0 or -errno. */
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

/* Return a number that other fabrics do not have; it is not a secret. */
static uint32_t table_salt(void)
{
	uint32_t salt;

	if (getrandom(&salt, sizeof(salt), GRND_NONBLOCK) != sizeof(salt))
		salt = (uint32_t)clock_now();
	return salt;
}

static int table_init(struct urxe_fabric *f, int fd)
{
	const size_t size = offsetof(struct cm_table, chan);
	struct cm_table *t;
	int ret;

	if (mkdirat(f->dirfd, "cm.d", 0700) && errno != EEXIST)
		return -errno;
	ret = sparse_allowed(sizeof(*t));
	if (ret)
		return ret;
	ret = posix_fallocate(fd, 0, size);
	if (ret || ftruncate(fd, sizeof(*t)))
		return ret ? -ret : -errno;
	t = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (t == MAP_FAILED)
		return -errno;
	memcpy(t->magic, CM_MAGIC, sizeof(t->magic));
	t->version = urxe_layout_version;
	t->salt = table_salt();
	munmap(t, size);
	return 0;
}

int cm_map_existing(struct urxe_fabric *f, struct cm_table **out)
{
	int ret, fd = openat(f->dirfd, "cm", O_RDWR | O_CLOEXEC);
	void *map;

	if (fd < 0)
		return -errno;
	ret = layout_map(fd, sizeof(**out), CM_MAGIC, &map);
	if (!ret)
		*out = map;
	close(fd);
	return ret;
}

int cm_map(struct urxe_fabric *f, struct cm_table **out)
{
	int ret = cm_map_existing(f, out);

	if (ret != -ENOENT)
		return ret;
	ret = fabric_make_file(f, "cm", table_init);
	return ret ? ret : cm_map_existing(f, out);
}

#define WHAT "the connection manager's lock"

/* Handle @ret, the result of robust_lock(); 1: the last holder died. */
static int cm_locked(struct cm *cm, int ret)
{
	if (ret > 0)
		cm_recover(cm);
	return ret < 0 ? ret : 0;
}

int cm_lock(struct cm *cm)
{
	return cm_locked(cm, robust_lock(cm->f, &cm->t->lock, WHAT));
}

int cm_lock_within(struct cm *cm, uint64_t limit)
{
	return cm_locked(cm, limit ? robust_lock_within(cm->f, &cm->t->lock,
							WHAT, limit) :
				     robust_try(cm->f, &cm->t->lock));
}

void cm_unlock(struct cm *cm)
{
	robust_unlock(cm->f, &cm->t->lock);
}

/*
 * Count the joins of multicast groups again: the process that died may have
 * joined or left a group, and not entered that in the table.
 */
static void mc_recount(struct cm *cm)
{
	struct mcast_counts *counts = mcast_counts_new();
	struct cm_mc *mc;

	if (!counts)
		return;
	cm_for_each_mc(cm, mc)
		if (mc->mlid)
			mcast_count(counts, mc->mlid, mc->device, mc->receives);
	mcast_counts_set(cm->f, counts);
}

void cm_recover(struct cm *cm)
{
	struct cm_table *t = cm->t;

	t->chan_low = t->id_low = t->event_low = t->mc_low = 0;
	t->dying = 1; /* have cm_chan_reap() search for DYING channels */
	cm_event_rebuild(cm);
	mc_recount(cm);
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

/*
 * Return the lowest free entry of a table, and reserve memory if it has none.
 * *@low: no entry below is free; *@high: number of entries with memory.
 * Return NULL if all @max entries are in use or memory is exhausted.
 */
static void *table_take(struct cm *cm, void *table, size_t size, uint32_t *low,
			uint32_t *high, uint32_t max)
{
	const off_t start = (char *)table - (char *)cm->t;
	const uint32_t end = cm_min(*high, max);
	char *at = table;
	uint32_t i, n;

	for (i = cm_min(*low, end); i < end; i++)
		if (!*(uint32_t *)(at + i * size))
			break;
	n = cm_min(max - end, GROW);
	if (i == end) {
		if (!n || table_reserve(cm->f, start + end * size, n * size))
			return NULL;
		*high = end + n;
	}
	*low = i;
	return at + i * size;
}
static_assert(!offsetof(struct cm_chan, state) &&
		      !offsetof(struct cm_id, used) &&
		      !offsetof(struct cm_event, used) &&
		      !offsetof(struct cm_mc, used),
	      "table_take() reads the first word");

#define TAKE(cm, kind, max)                                   \
	table_take(cm, (cm)->t->kind, sizeof(*(cm)->t->kind), \
		   &(cm)->t->kind##_low, &(cm)->t->kind##_high, max)

struct cm_chan *cm_chan_new(struct cm *cm)
{
	struct cm_chan *c = TAKE(cm, chan, CM_MAX_CHAN);

	if (c)
		*c = (struct cm_chan){ .gen = c->gen + 1 };
	return c;
}

/* Take the lowest free index, as the kernel does. */
struct cm_id *cm_id_new(struct cm *cm, struct cm_chan *c)
{
	struct cm_id *id = TAKE(cm, id, CM_MAX_ID);

	if (!id)
		return NULL;
	*id = (struct cm_id){ .gen = id->gen + 1,
			      .host = (uint16_t)cm->f->host,
			      .chan = cm_chan_ref(cm, c) };
	id->used = 1;
	return id;
}

struct cm_event *cm_event_alloc(struct cm *cm)
{
	struct cm_event *e = TAKE(cm, event, CM_MAX_EVENT);

	if (e)
		*e = (struct cm_event){ 0 };
	return e;
}

struct cm_mc *cm_mc_new(struct cm *cm)
{
	struct cm_mc *mc = TAKE(cm, mc, CM_MAX_MC);

	if (mc)
		*mc = (struct cm_mc){ .used = 1 };
	return mc;
}

void cm_mc_leave(struct cm *cm, struct cm_mc *mc)
{
	if (mc->mlid)
		mcast_port_leave(cm->f, mc->mlid, mc->device, mc->receives);
	cm_mc_free(cm, mc);
}
