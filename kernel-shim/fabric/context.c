// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts: opening, lifetime, and reaping of dead ones.
 *
 * A context is alive while the open-file-description lock (fcntl(2)) on its
 * arena file is held.  dup, fork and SCM_RIGHTS share the lock.  It is
 * released with the last descriptor of that open file and the last mapping
 * made from one, also if the processes are killed.  A kernel ufile has the
 * same lifetime.  A peer therefore opens the file itself before it maps it.
 *
 *	state		changed by
 *	FREE		context_claim_free(), to OPENING
 *	OPENING		its worker, to LIVE, or to FREE if that fails
 *	LIVE		context_reap(), to REAPING, if the lock is not held
 *	REAPING		its worker, to FREE
 *
 * A slot is claimed under the device lock, which stores the process id in
 * `worker`.  Opening and reaping then run without the lock.  A worker that is
 * stopped blocks its own slot only.  If the worker of OPENING or REAPING is
 * dead, or gave up (worker 0), another process claims the slot for reaping.
 *
 * Contexts are reaped when a device is opened or closed, when a resource is
 * exhausted, by service threads that find a peer dead, and by the tools.
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
#include "profile.h"
#include "shared/bitmap.h"

static const struct {
	const char *name;
	uint32_t limit;
	bool fabric_wide; /* the limit applies to the sum of all contexts */
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

/* Number of objects of a context; 0 if the count is damaged. */
static uint32_t objects_of(const struct urxe_ctx_slot *c, enum urxe_obj o)
{
	uint32_t n = load_relaxed(&c->used[o]);

	return n <= objects[o].limit ? n : 0;
}

/*
 * Recompute the device's count from those of the contexts.  True if the limit
 * is reached; false: the count was too high.
 */
static bool objects_full(struct urxe_fabric *f, enum urxe_obj o)
{
	uint32_t i, n = 0;

	for (i = 0; i < URXE_MAX_CTX; i++)
		if (load_relaxed(&f->dev->ctx[i].state) != URXE_CTX_FREE)
			n += objects_of(&f->dev->ctx[i], o);
	store_relaxed(&f->dev->used[o], n);
	return n >= objects[o].limit;
}

/* Count an object of the device.  False: the limit is reached. */
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
 * Count an object of a context.  False: the limit is reached.  A count above
 * the limit is damaged and therefore ignored; the size of the context's table
 * is then the only limit.
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

/* Number of objects of the contexts of a device. */
static uint64_t objects_of_device(struct urxe_dev *dev,
				  const struct urxe_hca *hca, enum urxe_obj o)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < URXE_MAX_CTX; i++)
		if (load_relaxed(&dev->ctx[i].state) != URXE_CTX_FREE &&
		    hca_of_ctx(dev, i) == hca)
			n += objects_of(&dev->ctx[i], o);
	return n;
}

/*
 * Check the limit of the device's profile, if it is lower than that of urxe.
 * Threads that create objects at the same time may exceed it.
 */
static int objects_check_profile(struct urxe_fabric *f, uint32_t slot,
				 enum urxe_obj o)
{
	static const uint8_t key[URXE_OBJ_COUNT] = {
		[URXE_OBJ_PD] = PROFILE_max_pd,
		[URXE_OBJ_MR] = PROFILE_max_mr,
		[URXE_OBJ_MW] = PROFILE_max_mw,
		[URXE_OBJ_CQ] = PROFILE_max_cq,
		[URXE_OBJ_QP] = PROFILE_max_qp,
		[URXE_OBJ_SRQ] = PROFILE_max_srq,
		[URXE_OBJ_AH] = PROFILE_max_ah,
	};
	const struct urxe_hca *hca = hca_of_ctx(f->dev, slot);
	const uint64_t most = hca->profile.value[key[o]];

	if (!key[o] || most >= objects[o].limit ||
	    objects_of_device(f->dev, hca, o) < most ||
	    (fabric_reap(f) && objects_of_device(f->dev, hca, o) < most))
		return 0;
	return fabric_fail(
		profile_error(&hca->profile, key[o], ENOMEM),
		"the device can have at most %llu %ss; profile %.31s",
		(unsigned long long)most, objects[o].name, hca->profile.name);
}

int fabric_obj_get(struct urxe_fabric *f, uint32_t slot, enum urxe_obj o)
{
	int ret = objects_check_profile(f, slot, o);

	if (ret)
		return ret;
	if (!objects[o].fabric_wide)
		return objects_take_own(f, slot, o) ?
			       0 :
			       fabric_fail(ENOMEM,
					   "a context can have at most %u %ss",
					   objects[o].limit, objects[o].name);
	if (!objects_take(f, o))
		return fabric_fail(ENOMEM, "the device can have at most %u %ss",
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
		return true; /* unknown: treat it as alive */
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

/*
 * Clear the connection words of the context's QPs, which peers may have
 * mapped, and free the QP numbers.
 */
static void context_close_qps(struct urxe_fabric *f, uint32_t slot,
			      uint32_t gen)
{
	const uint32_t high = qp_slots(f->dev);
	struct urxe_arena *a = NULL;
	uint32_t i, s, g;
	int fd = -1;

	for (i = 0; i < high; i++) {
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

/* Under the device lock: remove QPNs that no longer exist from all groups. */
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

/*
 * Has the device groups or XRCDs?  Without the lock: a dead context can no
 * longer attach a QP or open an XRCD.
 */
static bool has_groups_or_xrcds(const struct urxe_fabric *f)
{
	uint32_t i;

	for (i = 0; i < URXE_MAX_MCAST_GRP; i++)
		if (load_relaxed(&f->dev->mcast[i].count))
			return true;
	for (i = 0; i < URXE_MAX_XRCD; i++)
		if (load_relaxed(&f->dev->xrcd[i].used))
			return true;
	return false;
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

/* seq_cst, as is the store of FREE: one of the last two sees both free. */
static bool all_contexts_are_free(const struct urxe_fabric *f)
{
	uint32_t i;

	for (i = 0; i < URXE_MAX_CTX; i++)
		if (load_seq_cst(&f->dev->ctx[i].state) != URXE_CTX_FREE)
			return false;
	return true;
}

/*
 * Reset the device's counts if no context is left.  A process that died
 * between counting an object for the device and for its context leaves the
 * two different.  objects_full() corrects that, too.
 */
static void context_forget_counts(struct urxe_fabric *f)
{
	int o;

	/* page faults occur here, not while the lock is held */
	if (!all_contexts_are_free(f) || fabric_lock(f))
		return;
	if (all_contexts_are_free(f))
		for (o = 0; o < URXE_OBJ_COUNT; o++)
			store_relaxed(&f->dev->used[o], 0);
	fabric_unlock(f);
}

void fabric_request_recovery(struct urxe_fabric *f)
{
	fetch_add_release(&f->dev->recover_gen, 1);
	futex_wake(&f->dev->recover_gen, INT_MAX); /* wakes service threads */
}

/*
 * Free what a dead context held.  The caller has claimed the slot.  Every
 * step can be repeated: if this process dies, or cannot get the lock, another
 * process claims the slot and repeats them.
 */
static bool context_free(struct urxe_fabric *f, uint32_t slot, uint32_t gen)
{
	struct urxe_ctx_slot *c = &f->dev->ctx[slot];
	char name[32];

	context_close_qps(f, slot, gen);
	if (has_groups_or_xrcds(f)) {
		if (fabric_lock(f))
			goto err_unclaim;
		context_leave_mcast(f);
		context_close_xrcds(f, slot);
		fabric_unlock(f);
	}
	if (context_free_dms(f, slot, gen) || fifo_remove_all(f, slot, gen))
		goto err_unclaim;
	context_free_objects(f, slot);
	arena_name(name, sizeof(name), slot, gen);
	unlinkat(f->dirfd, name, 0);
	store_seq_cst(&c->state, URXE_CTX_FREE);
	fabric_request_recovery(f);
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
 * Number of live contexts that an open checks, round robin, so that its cost
 * does not grow with the number of contexts.  Each dead context restarts the
 * count.  A job that was killed as a whole is therefore reaped at once.
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

/* True if less than half of the file system is available. */
static bool memory_is_scarce(const struct urxe_fabric *f)
{
	struct statfs s;

	return !fstatfs(f->dirfd, &s) && s.f_bavail < s.f_blocks / 2;
}

/* -------------------------------------------------------------- opening */

/*
 * Create an arena file; one of a dead context with that name is removed
 * first.  -EEXIST: the existing file is in use, so the segment's slot table
 * was damaged.
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
		return fabric_fail(-fd, "cannot create %s/%s: %s", f->dir, name,
				   strerror(-fd));
	ret = arena_init(fd, slot, gen, load_relaxed(&c->hca), c->comm);
	if (ret)
		goto err_unlink;
	if (fchmod(fd, URXE_ARENA_MODE) || fcntl(fd, F_OFD_SETLK, &lk)) {
		ret = fabric_fail(errno, "cannot lock %s/%s: %s", f->dir, name,
				  strerror(errno));
		goto err_unlink;
	}
	return fd;

err_unlink:
	unlinkat(f->dirfd, name, 0);
	close(fd);
	return ret;
}

/*
 * Claim a free slot for a context of device k, and increment its generation.
 * Returns the slot, or -errno.
 */
static int context_claim_free(struct urxe_fabric *f, uint32_t k,
			      const char comm[16])
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
		ret = fabric_fail(ENOSPC,
				  "the device can have at most %u contexts",
				  URXE_MAX_CTX);
		goto out;
	}
	memcpy(c->comm, comm, sizeof(c->comm));
	store_relaxed(&c->pid, getpid());
	store_relaxed(&c->hca, k);
	store_relaxed(&c->gen, (load_relaxed(&c->gen) + 1) & URXE_GEN_MASK);
	store_relaxed(&c->worker, process_id(f));
	store_relaxed(&c->next_fifo, 0);
	store_release(&c->state, URXE_CTX_OPENING);
	dev->ctx_next = slot + 1;
out:
	fabric_unlock(f);
	return ret;
}

/*
 * Number of free slots tried whose arena file is in use.  After that the
 * segment counts as unusable.
 */
#define OPEN_TRIES 64

static int context_open_new(struct urxe_fabric *f, uint32_t k)
{
	struct urxe_ctx_slot *c;
	int fd, slot, tries = 0;
	char comm[16];

	file_read(AT_FDCWD, "/proc/self/comm", comm, sizeof(comm));
	comm[strcspn(comm, "\n")] = 0;
	do {
		slot = context_claim_free(f, k, comm);
		if (slot < 0)
			return slot;
		c = &f->dev->ctx[slot];
		fd = context_create_arena(f, slot, load_relaxed(&c->gen));
		store_release(&c->state,
			      fd < 0 ? URXE_CTX_FREE : URXE_CTX_LIVE);
	} while (fd == -EEXIST && ++tries < OPEN_TRIES);
	return fd;
}

int fabric_context_open(struct urxe_fabric *f, uint32_t k)
{
	int fd;

	if (memory_is_scarce(f))
		fabric_reap(f);
	else
		context_reap_some(f);
	fd = context_open_new(f, k);
	if ((fd == -ENOSPC || fd == -ENOMEM) && fabric_reap(f))
		fd = context_open_new(f, k);
	return fd;
}

int fabric_arena_device(int fd, const struct stat *st)
{
	struct urxe_arena *a = NULL;
	const size_t head = offsetof(struct urxe_arena, opener);
	char buf[offsetof(struct urxe_arena, opener)];
	int saved = errno;
	uint32_t hca;
	bool is;

	if (st->st_mode != (S_IFREG | URXE_ARENA_MODE) ||
	    st->st_size != (off_t)URXE_ARENA_SIZE)
		return -1;
	is = pread(fd, buf, head, 0) == (ssize_t)head &&
	     !memcmp(buf, URXE_ARENA_MAGIC, sizeof(a->magic));
	errno = saved;
	if (!is)
		return -1;
	memcpy(&hca, buf + offsetof(struct urxe_arena, hca), sizeof(hca));
	return hca < URXE_MAX_HCA ? (int)hca : 0;
}

bool fabric_is_arena(int fd, const struct stat *st)
{
	return fabric_arena_device(fd, st) >= 0;
}
