// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts: how they are opened, how long they live, how they are reaped.
 *
 * A context is alive while somebody holds the open-file-description lock on
 * its arena file.  The lock follows dup, fork and SCM_RIGHTS and ends with
 * the last descriptor, as a kernel ufile does, and the last mapping made from
 * one (so a peer maps what it opened itself).  It ends by itself when
 * processes die.  A slot is claimed under the device lock, and then opened or
 * reaped without it: whoever is stopped in the middle keeps his slot, and
 * nothing else, and if he is killed another one takes it over.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fabric.h"
#include "internal.h"
#include "shared/bitmap.h"

static const struct {
	const char *name;
	uint32_t limit;
	bool fabric_wide; /* the limit is of all contexts together */
} objects[URXE_OBJ_COUNT] = {
	/* entry 0 of a context's table is never used */
	[URXE_OBJ_PD] = { "pd", URXE_MAX_PD - 1, false },
	[URXE_OBJ_MR] = { "mr", URXE_MAX_MR, false },
	[URXE_OBJ_MW] = { "mw", URXE_MAX_MW, false },
	[URXE_OBJ_CQ] = { "cq", URXE_MAX_CQ - 1, false },
	[URXE_OBJ_QP] = { "qp", URXE_MAX_QP - 2, true },
	[URXE_OBJ_SRQ] = { "srq", URXE_MAX_SRQ - 1, false },
	[URXE_OBJ_AH] = { "ah", URXE_MAX_AH, false },
	[URXE_OBJ_XRCD] = { "xrcd", URXE_MAX_XRCD, true },
	[URXE_OBJ_DM] = { "dm", URXE_MAX_DM, true },
	[URXE_OBJ_COMP_CNTR] = { "cntr", URXE_MAX_COMP_CNTR - 1, false },
};

uint32_t fabric_obj_limit(enum urxe_obj o)
{
	return objects[o].limit;
}

const char *fabric_obj_name(enum urxe_obj o)
{
	return objects[o].name;
}

/* A context's objects; a number that cannot be was damaged, and counts not. */
static uint32_t objects_of(const struct urxe_ctx_slot *c, enum urxe_obj o)
{
	uint32_t n = load_relaxed(&c->used[o]);

	return n <= objects[o].limit ? n : 0;
}

/* Is the device full, or is its count wrong?  Then it is mended. */
static bool objects_full(struct urxe_fabric *f, enum urxe_obj o)
{
	uint32_t i, n = 0;

	for (i = 0; i < URXE_MAX_CTX; i++)
		if (load_relaxed(&f->dev->ctx[i].state) != URXE_CTX_FREE)
			n += objects_of(&f->dev->ctx[i], o);
	store_relaxed(&f->dev->used[o], n);
	return n >= objects[o].limit;
}

/* One more of all contexts together; false: the device is full. */
static bool objects_take(struct urxe_fabric *f, enum urxe_obj o)
{
	_Atomic uint32_t *used = &f->dev->used[o];

	while (fetch_add_relaxed(used, 1) >= objects[o].limit) {
		fetch_sub_relaxed(used, 1);
		if (objects_full(f, o) && !fabric_reap(f))
			return false;
	}
	return true;
}

/*
 * One more of a context; false: it has as many as its limit.  A count above the
 * limit is damaged and refuses nothing: the context's tables end there anyway.
 */
static bool objects_take_own(struct urxe_fabric *f, uint32_t slot,
			     enum urxe_obj o)
{
	_Atomic uint32_t *used = &f->dev->ctx[slot].used[o];
	uint32_t n = load_relaxed(used);

	do {
		if (n == objects[o].limit)
			return false;
	} while (!cas_relaxed(used, &n, n + 1));
	fetch_add_relaxed(&f->dev->used[o], 1);
	return true;
}

int fabric_obj_get(struct urxe_fabric *f, uint32_t slot, enum urxe_obj o)
{
	if (!objects[o].fabric_wide)
		return objects_take_own(f, slot, o) ?
			       0 :
			       fabric_fail(ENOMEM,
					   "a context has %u %ss at most",
					   objects[o].limit, objects[o].name);
	if (!objects_take(f, o))
		return fabric_fail(ENOMEM, "the device has %u %ss at most",
				   objects[o].limit, objects[o].name);
	fetch_add_relaxed(&f->dev->ctx[slot].used[o], 1);
	return 0;
}

void fabric_obj_put(struct urxe_fabric *f, uint32_t slot, enum urxe_obj o)
{
	fetch_sub_relaxed(&f->dev->ctx[slot].used[o], 1);
	fetch_sub_relaxed(&f->dev->used[o], 1);
}

static void arena_name(char *buf, size_t len, uint32_t slot, uint32_t gen)
{
	snprintf(buf, len, URXE_ARENA_NAME, slot, gen);
}

bool arena_fd_alive(int fd)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_OFD_GETLK, &lk))
		return true; /* cannot tell: it stays */
	return lk.l_type != F_UNLCK;
}

bool fabric_context_alive(struct urxe_fabric *f, uint32_t slot, uint32_t gen)
{
	char name[32];
	bool alive;
	int fd;

	arena_name(name, sizeof(name), slot, gen);
	fd = openat(f->dirfd, name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT;
	alive = arena_fd_alive(fd);
	close(fd);
	return alive;
}

/* -------------------------------------------------------------- reaping */

/* Peers have the arena mapped: tell them that its QPs answer no more. */
static void context_close_qps(struct urxe_fabric *f, uint32_t slot,
			      uint32_t gen)
{
	struct urxe_arena *a = NULL;
	uint32_t i, s, g;
	int fd = -1;

	for (i = 0; i < URXE_MAX_QP; i++) {
		uint64_t e = load_acquire(&f->dev->qp[i]);

		if (!e || !qpn_lookup(f->dev, URXE_DIR_QPN(e), &s, &g) ||
		    s != slot || g != gen)
			continue;
		if (!a && arena_map_peer(f, slot, gen, &a, &fd))
			a = NULL;
		if (a)
			store_seq_cst(&a->qp[i].conn, 0);
		qpn_free(f, i);
	}
	if (a) {
		arena_unmap(a);
		close(fd);
	}
}

/* A group's members are QPNs; those of dead QPs match nobody any more. */
static void context_leave_mcast(struct urxe_fabric *f)
{
	uint32_t g, i, qpn, slot, gen, left;

	for (g = 0; g < URXE_MAX_MCAST_GRP; g++) {
		struct urxe_mcast_grp *grp = &f->dev->mcast[g];

		if (!load_relaxed(&grp->count))
			continue;
		for (i = left = 0; i < URXE_MAX_MCAST_ATTACH; i++) {
			qpn = load_relaxed(&grp->qpn[i]);
			if (!qpn)
				continue;
			if (qpn_lookup(f->dev, qpn, &slot, &gen))
				left++;
			else
				store_relaxed(&grp->qpn[i], 0);
		}
		store_release(&grp->count, left);
		fetch_add_release(&f->dev->wire.groups, 1);
	}
}

static void context_close_xrcds(struct urxe_fabric *f, uint32_t slot)
{
	uint32_t i, w;

	for (i = 0; i < URXE_MAX_XRCD; i++) {
		struct urxe_xrcd_slot *x = &f->dev->xrcd[i];

		if (!load_relaxed(&x->used))
			continue;
		bitmap_clear(x->ctx, slot, 1);
		for (w = 0; w < URXE_MAX_CTX / 64 && !x->ctx[w]; w++)
			;
		if (w == URXE_MAX_CTX / 64)
			store_relaxed(&x->used, 0);
	}
}

static int context_free_dms(struct urxe_fabric *f, uint32_t slot, uint32_t gen)
{
	int ret = 0;
	uint32_t i;

	for (i = 0; i < dm_slots(f->dev) && !ret; i++) {
		struct urxe_dm_slot *d = &f->dev->dm[i];

		if (load_relaxed(&d->used) == slot + 1 && d->ctx_gen == gen)
			ret = dm_heap_reclaim(f, i);
	}
	return ret;
}

static void context_free_objects(struct urxe_fabric *f, uint32_t slot)
{
	struct urxe_ctx_slot *c = &f->dev->ctx[slot];
	uint32_t n;
	int o;

	for (o = 0; o < URXE_OBJ_COUNT; o++) {
		n = objects_of(c, o);
		store_relaxed(&c->used[o], 0);
		fetch_sub_relaxed(&f->dev->used[o], n);
	}
}

/*
 * Who dies between the two counts of an object leaves them apart.  When nobody
 * is there any more, or objects_full() looks, that is mended.
 */
static void context_forget_counts(struct urxe_fabric *f)
{
	uint32_t i;
	int o;

	if (fabric_lock(f))
		return;
	for (i = 0; i < URXE_MAX_CTX; i++)
		if (load_relaxed(&f->dev->ctx[i].state) != URXE_CTX_FREE)
			goto out;
	for (o = 0; o < URXE_OBJ_COUNT; o++)
		store_relaxed(&f->dev->used[o], 0);
out:
	fabric_unlock(f);
}

void fabric_count_death(struct urxe_fabric *f)
{
	fetch_add_release(&f->dev->deaths, 1);
	futex_wake(&f->dev->deaths, INT_MAX); /* service threads */
}

/*
 * It was claimed.  Each step may be done again by another, if we die or cannot
 * have the lock.
 */
static bool context_free(struct urxe_fabric *f, uint32_t slot, uint32_t gen)
{
	struct urxe_ctx_slot *c = &f->dev->ctx[slot];
	char name[32];

	context_close_qps(f, slot, gen);
	if (fabric_lock(f))
		goto err_unclaim;
	context_leave_mcast(f);
	context_close_xrcds(f, slot);
	fabric_unlock(f);
	if (context_free_dms(f, slot, gen) || fifo_remove_all(f, slot, gen))
		goto err_unclaim;
	context_free_objects(f, slot);
	arena_name(name, sizeof(name), slot, gen);
	unlinkat(f->dirfd, name, 0);
	store_release(&c->state, URXE_CTX_FREE);
	fabric_count_death(f);
	context_forget_counts(f);
	return true;

err_unclaim:
	store_release(&c->worker, 0);
	return false;
}

static bool context_reap(struct urxe_fabric *f, uint32_t slot, uint32_t gen)
{
	struct urxe_ctx_slot *c = &f->dev->ctx[slot];
	uint32_t state = load_acquire(&c->state);
	uint32_t worker = load_relaxed(&c->worker);
	bool claimed;

	if (state == URXE_CTX_FREE || load_relaxed(&c->gen) != gen)
		return false;
	if (state == URXE_CTX_LIVE ? fabric_context_alive(f, slot, gen) :
				     !process_is_dead(f, worker))
		return false;
	if (fabric_lock(f))
		return false;
	claimed = load_relaxed(&c->state) == state &&
		  load_relaxed(&c->gen) == gen &&
		  load_relaxed(&c->worker) == worker;
	if (claimed) {
		store_relaxed(&c->worker, process_id(f));
		store_relaxed(&c->state, URXE_CTX_REAPING);
	}
	fabric_unlock(f);
	return claimed && context_free(f, slot, gen);
}

int fabric_reap(struct urxe_fabric *f)
{
	int n = 0, saved = errno;
	uint32_t slot;

	for (slot = 0; slot < URXE_MAX_CTX; slot++)
		n += context_reap(f, slot,
				  load_relaxed(&f->dev->ctx[slot].gen));
	errno = saved;
	return n;
}

bool fabric_reap_one(struct urxe_fabric *f, uint32_t slot, uint32_t gen)
{
	return context_reap(f, slot, gen);
}

/*
 * Living contexts that an opening asks, in turn, so that it takes no longer
 * among many.  Each dead one has it ask as many more: so it finds all of a
 * killed job.
 */
#define REAP_IN_TURN 4

static void context_reap_some(struct urxe_fabric *f)
{
	struct urxe_dev *dev = f->dev;
	uint32_t slot = load_relaxed(&dev->reap_next) % URXE_MAX_CTX;
	uint32_t n, left = REAP_IN_TURN;

	for (n = 0; n < URXE_MAX_CTX && left; n++) {
		struct urxe_ctx_slot *c = &dev->ctx[slot];

		if (context_reap(f, slot, load_relaxed(&c->gen)))
			left = REAP_IN_TURN;
		else if (load_relaxed(&c->state) != URXE_CTX_FREE)
			left--;
		slot = (slot + 1) % URXE_MAX_CTX;
	}
	store_relaxed(&dev->reap_next, slot);
}

/* Less than half of the memory for shared files is left. */
static bool memory_is_scarce(const struct urxe_fabric *f)
{
	struct statfs s;

	return !fstatfs(f->dirfd, &s) && s.f_bavail < s.f_blocks / 2;
}

/* -------------------------------------------------------------- opening */

/*
 * A file of that name, which is new.  -EEXIST: somebody lives in the one that
 * there is, so the device segment was damaged.
 */
static int arena_create(struct urxe_fabric *f, const char *name)
{
	int tries, old, fd = -1;
	bool alive;

	for (tries = 0; fd < 0 && tries < 2; tries++) {
		fd = openat(f->dirfd, name,
			    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			break;
		old = openat(f->dirfd, name,
			     O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		alive = old >= 0 && arena_fd_alive(old);
		if (old >= 0)
			close(old);
		errno = EEXIST;
		if (alive || unlinkat(f->dirfd, name, 0))
			break;
	}
	return fd < 0 ? -errno : fd;
}

static int context_create_arena(struct urxe_fabric *f, uint32_t slot,
				uint32_t gen)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct urxe_ctx_slot *c = &f->dev->ctx[slot];
	char name[32];
	int fd, ret;

	arena_name(name, sizeof(name), slot, gen);
	fd = arena_create(f, name);
	if (fd < 0)
		return fabric_fail(-fd, "create %s/%s: %s", f->dir, name,
				   strerror(-fd));
	ret = arena_init(fd, slot, gen, c->comm);
	if (ret)
		goto err_unlink;
	if (fchmod(fd, URXE_ARENA_MODE) || fcntl(fd, F_OFD_SETLK, &lk)) {
		ret = fabric_fail(errno, "lock %s/%s: %s", f->dir, name,
				  strerror(errno));
		goto err_unlink;
	}
	return fd;

err_unlink:
	unlinkat(f->dirfd, name, 0);
	close(fd);
	return ret;
}

/* A free slot becomes ours to open, with a new generation.  -errno */
static int context_claim_free(struct urxe_fabric *f, const char comm[16])
{
	struct urxe_dev *dev = f->dev;
	struct urxe_ctx_slot *c = NULL;
	uint32_t n, slot = 0;
	int ret;

	ret = fabric_lock(f);
	if (ret)
		return ret;
	for (n = 0; n < URXE_MAX_CTX; n++) {
		slot = (dev->ctx_next + n) % URXE_MAX_CTX;
		c = &dev->ctx[slot];
		if (load_relaxed(&c->state) == URXE_CTX_FREE)
			break;
	}
	ret = (int)slot;
	if (n == URXE_MAX_CTX) {
		ret = fabric_fail(ENOSPC, "the device has %u contexts at most",
				  URXE_MAX_CTX);
		goto out;
	}
	memcpy(c->comm, comm, sizeof(c->comm));
	store_relaxed(&c->pid, getpid());
	store_relaxed(&c->gen, (load_relaxed(&c->gen) + 1) & URXE_GEN_MASK);
	store_relaxed(&c->worker, process_id(f));
	store_relaxed(&c->next_fifo, 0);
	store_release(&c->state, URXE_CTX_OPENING);
	dev->ctx_next = slot + 1;
out:
	fabric_unlock(f);
	return ret;
}

/* How often a place may be taken: then the segment is damaged beyond use. */
#define OPEN_TRIES 64

static int context_open_new(struct urxe_fabric *f)
{
	struct urxe_ctx_slot *c;
	int fd, slot, tries = 0;
	char comm[16];

	file_read(AT_FDCWD, "/proc/self/comm", comm, sizeof(comm));
	comm[strcspn(comm, "\n")] = 0;
	do {
		slot = context_claim_free(f, comm);
		if (slot < 0)
			return slot;
		c = &f->dev->ctx[slot];
		fd = context_create_arena(f, slot, load_relaxed(&c->gen));
		store_release(&c->state,
			      fd < 0 ? URXE_CTX_FREE : URXE_CTX_LIVE);
	} while (fd == -EEXIST && ++tries < OPEN_TRIES);
	return fd;
}

int fabric_context_open(struct urxe_fabric *f)
{
	int fd;

	if (memory_is_scarce(f))
		fabric_reap(f);
	else
		context_reap_some(f);
	fd = context_open_new(f);
	if ((fd == -ENOSPC || fd == -ENOMEM) && fabric_reap(f))
		fd = context_open_new(f);
	return fd;
}

bool fabric_is_arena(int fd, const struct stat *st)
{
	char magic[16];
	int saved = errno;
	bool is;

	if (st->st_mode != (S_IFREG | URXE_ARENA_MODE) ||
	    st->st_size != (off_t)URXE_ARENA_SIZE)
		return false;
	is = pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	     !memcmp(magic, URXE_ARENA_MAGIC, sizeof(magic));
	errno = saved;
	return is;
}
