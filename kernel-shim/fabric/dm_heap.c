// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Device memory (ibv_alloc_dm(3)): a heap in shared huge pages that every
 * process of the fabric maps.
 *
 * The page kinds are tried in this order: a file on a writable hugetlbfs that
 * has room for the whole heap; tmpfs with its 2 MiB chunks collapsed by
 * MADV_COLLAPSE (Linux 6.1; needs no privilege and ignores shmem_enabled);
 * MADV_HUGEPAGE; ordinary pages.
 *
 * Memory is reserved when it is allocated, by MADV_COLLAPSE or fallocate(2).
 * A full file system is therefore ENOMEM at allocation and not SIGBUS at
 * access.  If the file system has enough free space, whole chunks are
 * reserved.  A chunk is returned to the system when nothing in it is
 * allocated.
 *
 * An allocation is an entry of dev->dm[] (struct urxe_dm_slot).  Slots and
 * the page bitmap change under the device lock.  Reservation and release of
 * pages run without it, while the slot is used and its count in refs is 0:
 *
 *	used	count	the slot
 *	0	0	is free
 *	owner	0	is being allocated or freed, and owns its pages
 *	owner	1	is allocated
 *	owner	1 + n	has n MRs
 *
 * If the owning context dies, its reaper frees the slot from any state
 * (dm_heap_reclaim).  If the holder of the lock dies, the bitmap is rebuilt
 * from the slots (dm_heap_recover).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/madvise.h"
#include "fabric.h"
#include "internal.h"
#include "shared/bitmap.h"

#define CHUNK (2ull << 20)
#define CHUNK_PAGES (CHUNK / URXE_PAGE)

const char *dm_kind_name(uint32_t kind)
{
	static const char *const name[] = {
		[URXE_DM_UNUSED] = "not used yet",
		[URXE_DM_HUGETLB] = "hugetlbfs",
		[URXE_DM_COLLAPSED] = "tmpfs, collapsed into huge pages",
		[URXE_DM_ADVISED] = "tmpfs, huge pages advised",
		[URXE_DM_SMALL] = "tmpfs, ordinary pages",
	};

	return kind < sizeof(name) / sizeof(*name) ? name[kind] : "unknown";
}

/*
 * Number of free 2 MiB pages.  A mount without a size= option reports no
 * blocks at all; then the system's free pages count.
 */
static uint64_t hugetlb_free(const struct statfs *fs)
{
	char free_pages[32];

	if (fs->f_blocks)
		return fs->f_bfree;
	file_read(AT_FDCWD,
		  "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
		  free_pages, sizeof(free_pages));
	return strtoull(free_pages, NULL, 10);
}

/*
 * Create the heap's file on a hugetlbfs with 2 MiB pages and room for the
 * heap.  Returns the descriptor and the path, or -1.
 */
static int hugetlb_create(struct urxe_fabric *f, char *path, size_t len)
{
	const char *base = strrchr(f->dir, '/');
	struct statfs fs;
	struct mntent m;
	char buf[1024];
	int fd = -1;
	FILE *mounts;

	mounts = setmntent("/proc/self/mounts", "re");
	if (!mounts)
		return -1;
	while (fd < 0 && getmntent_r(mounts, &m, buf, sizeof(buf))) {
		if (strcmp(m.mnt_type, "hugetlbfs") || statfs(m.mnt_dir, &fs) ||
		    (uint64_t)fs.f_bsize != CHUNK ||
		    hugetlb_free(&fs) * CHUNK < f->dm_bytes)
			continue;
		/* unique: other processes may be doing the same */
		if ((size_t)snprintf(
			    path, len, "%s/urxe-%u-%s-%llx-%x", m.mnt_dir,
			    (unsigned int)geteuid(), base ? base + 1 : f->dir,
			    (unsigned long long)f->dev->hca[0].node_guid,
			    process_id(f)) >= len)
			continue;
		unlink(path);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0 && ftruncate(fd, (off_t)f->dm_bytes)) {
			unlink(path);
			close(fd);
			fd = -1;
		}
	}
	endmntent(mounts);
	return fd;
}

/*
 * Store where the heap is.  path is its new file on a hugetlbfs, or NULL.
 * -EEXIST: another process decided first.
 */
static int dm_home_decide(struct urxe_fabric *f, const char *path)
{
	struct urxe_dev *dev = f->dev;
	int ret;

	ret = fabric_lock(f);
	if (ret)
		return ret;
	ret = -EEXIST;
	if (load_relaxed(&dev->dm_home) == URXE_DM_UNDECIDED) {
		ret = 0;
		if (path) {
			store_relaxed(&dev->dm_kind, URXE_DM_HUGETLB);
			memcpy(dev->dm_path, path, sizeof(dev->dm_path));
		}
		store_release(&dev->dm_home,
			      path ? URXE_DM_PATH : URXE_DM_HERE);
	}
	fabric_unlock(f);
	return ret;
}

static int dm_home_choose(struct urxe_fabric *f)
{
	char path[sizeof(f->dev->dm_path)] = "";
	int fd, ret;

	fd = hugetlb_create(f, path, sizeof(path));
	ret = dm_home_decide(f, fd < 0 ? NULL : path);
	if (fd >= 0) {
		if (ret)
			unlink(path);
		close(fd);
	}
	return ret == -EEXIST ? 0 : ret;
}

/*
 * Open the file that hugetlb_create() made.  The path is from shared memory,
 * so the file's type and owner are checked.
 */
static int hugetlb_open(const char *path)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct statfs fs;
	struct stat st;

	if (fd < 0)
		return fd;
	if (!fstat(fd, &st) && !fstatfs(fd, &fs) &&
	    fs.f_type == HUGETLBFS_MAGIC && st.st_uid == geteuid())
		return fd;
	close(fd);
	errno = EPROTO;
	return -1;
}

void dm_heap_remove(struct urxe_dev *dev)
{
	char path[sizeof(dev->dm_path)];
	int fd;

	memcpy(path, dev->dm_path, sizeof(path));
	if (load_acquire(&dev->dm_home) != URXE_DM_PATH ||
	    path[sizeof(path) - 1])
		return;
	fd = hugetlb_open(path);
	if (fd < 0)
		return;
	/* first: if this process dies here, the next one makes a new file */
	store_relaxed(&dev->dm_ino, 0);
	store_release(&dev->dm_home, URXE_DM_UNDECIDED);
	unlink(path);
	close(fd);
}

/* Open the heap's file, and create it if it is missing.  -errno */
static int dm_heap_open(struct urxe_fabric *f)
{
	struct urxe_dev *dev = f->dev;
	int fd, ret = 0;

	if (load_acquire(&dev->dm_home) == URXE_DM_UNDECIDED)
		ret = dm_home_choose(f);
	if (ret)
		return ret;
	if (load_acquire(&dev->dm_home) == URXE_DM_PATH)
		fd = hugetlb_open(dev->dm_path);
	else
		fd = openat(f->dirfd, "dm",
			    (load_acquire(&dev->dm_ino) ? 0 : O_CREAT) |
				    O_RDWR | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	if (fd < 0)
		return fabric_fail(errno,
				   "cannot open the device memory heap: %s",
				   strerror(errno));
	return fd;
}

/*
 * Give a new file its size, and store its inode in the segment.  Concurrent
 * callers set the same size.  Once the inode is stored, only that file is
 * accepted (-EPROTO).
 */
static int dm_heap_size(struct urxe_fabric *f, int fd)
{
	uint64_t ino = load_acquire(&f->dev->dm_ino);
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return -errno;
	if (!ino && !st.st_size) {
		ret = sparse_allowed(f->dm_bytes);
		if (ret)
			return ret;
		if (ftruncate(fd, (off_t)f->dm_bytes))
			return -errno;
		st.st_size = (off_t)f->dm_bytes;
	}
	if (!ino && cas_acq_rel(&f->dev->dm_ino, &ino, st.st_ino))
		ino = st.st_ino;
	if (st.st_ino != ino || st.st_size < (off_t)f->dm_bytes)
		return fabric_fail(
			EPROTO,
			"the device memory heap is too short, or was replaced");
	return 0;
}

/*
 * Map the heap 2 MiB aligned: a huge page needs address and file offset equal
 * modulo 2 MiB.
 */
static int dm_heap_map_aligned(int fd, uint64_t bytes, char **out)
{
	char *area;
	size_t lead;
	void *dm;
	int ret;

	area = mmap(NULL, bytes + CHUNK, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED)
		return fabric_fail(
			errno,
			"no address space for the device memory heap: %s",
			strerror(errno));
	lead = (CHUNK - (uintptr_t)area % CHUNK) % CHUNK;
	ret = sparse_map(fd, bytes, area + lead, &dm);
	if (ret) {
		munmap(area, bytes + CHUNK);
		return ret;
	}
	if (lead)
		munmap(area, lead);
	munmap(area + lead + bytes, CHUNK - lead);
	madvise(dm, bytes, MADV_DONTDUMP);
	*out = dm;
	return 0;
}

/*
 * Make dm and fd the heap's mapping in this process.  Returns 1; 0 if the
 * heap is mapped already; -ENOENT if it is not mapped and dm is NULL; or
 * -errno.
 */
static int dm_heap_adopt(struct urxe_fabric *f, char *dm, int fd)
{
	int ret = fabric_lock(f); /* excludes threads of this process, too */

	if (ret)
		return ret;
	if (!f->dm && dm) {
		f->dm_fd = fd;
		f->dm = dm;
		ret = 1;
	} else if (!f->dm) {
		ret = -ENOENT;
	}
	fabric_unlock(f);
	return ret;
}

int dm_heap_map(struct urxe_fabric *f)
{
	char *dm = NULL;
	int ret, fd;

	ret = dm_heap_adopt(f, NULL, -1);
	if (ret != -ENOENT)
		return ret;
	fd = dm_heap_open(f);
	if (fd < 0)
		return fd;
	ret = dm_heap_size(f, fd);
	if (ret)
		goto out_close;
	ret = dm_heap_map_aligned(fd, f->dm_bytes, &dm);
	if (ret)
		goto out_close;
	ret = dm_heap_adopt(f, dm, fd);
	if (ret == 1)
		return 0;
	munmap(dm, f->dm_bytes); /* another thread mapped it first */
out_close:
	close(fd);
	return ret;
}

/*
 * Allocate huge pages for [offset, offset + len), which is whole chunks,
 * without ordinary pages before them: the kernel fills the holes around one
 * page.
 */
static bool dm_heap_collapse(struct urxe_fabric *f, uint64_t offset,
			     uint64_t len)
{
	char *p = f->dm + offset;
	uint64_t at;

	for (at = 0; at < len; at += CHUNK)
		if (madvise(p + at, URXE_PAGE, MADV_POPULATE_WRITE) ||
		    madvise(p + at, CHUNK, MADV_COLLAPSE))
			return false;
	store_relaxed(&f->dev->dm_kind, URXE_DM_COLLAPSED);
	return true;
}

/* Store in dm_kind whether the kernel accepts advice for allocated pages. */
static void dm_heap_advise(struct urxe_fabric *f, uint64_t offset, uint64_t len)
{
	char *p = f->dm + offset;
	uint32_t kind = URXE_DM_SMALL;

	if (load_relaxed(&f->dev->dm_kind) == URXE_DM_HUGETLB)
		return;
	if (!madvise(p, len, MADV_HUGEPAGE))
		kind = URXE_DM_ADVISED;
	store_relaxed(&f->dev->dm_kind, kind);
}

/*
 * Reserve pages: whole chunks if that leaves the file system three quarters
 * of its free space, or if it is a hugetlbfs; else only the range.
 */
static int dm_heap_reserve(struct urxe_fabric *f, uint64_t offset, uint64_t len)
{
	uint64_t start = offset / CHUNK * CHUNK;
	uint64_t end = (offset + len + CHUNK - 1) / CHUNK * CHUNK;
	bool huge = load_relaxed(&f->dev->dm_kind) == URXE_DM_HUGETLB;
	struct statfs fs;

	if (huge || (!fstatfs(f->dm_fd, &fs) &&
		     (uint64_t)fs.f_bavail * fs.f_bsize / 4 > end - start)) {
		if (!huge && dm_heap_collapse(f, start, end - start))
			return 0;
		if (!fallocate(f->dm_fd, 0, (off_t)start,
			       (off_t)(end - start))) {
			dm_heap_advise(f, start, end - start);
			return 0;
		}
	}
	if (huge)
		return -ENOMEM;
	if (load_relaxed(&f->dev->dm_kind) == URXE_DM_UNUSED)
		store_relaxed(&f->dev->dm_kind, URXE_DM_SMALL);
	return arena_reserve(f->dm_fd, offset, len);
}

/* Return the whole chunks of a range to the system. */
static void dm_heap_release(struct urxe_fabric *f, uint64_t offset,
			    uint64_t len)
{
	uint64_t start = (offset + CHUNK - 1) / CHUNK * CHUNK;
	uint64_t end = (offset + len) / CHUNK * CHUNK;
	int fd = f->dm_fd;

	if (start >= end)
		return;
	if (!f->dm)
		fd = dm_heap_open(f);
	if (fd < 0)
		return;
	/* if it fails they stay reserved for the next allocation there */
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  (off_t)start, (off_t)(end - start));
	if (!f->dm)
		close(fd);
}

static int dm_slot_find(const struct urxe_dev *dev)
{
	uint32_t i;

	for (i = 0; i < dm_slots(dev); i++)
		if (!load_relaxed(&dev->dm[i].used))
			return (int)i;
	return -ENOMEM;
}

/*
 * Reserve memory for more slots.  Without the lock; concurrent callers
 * reserve the same range.
 */
static int dm_slots_more(struct urxe_fabric *f)
{
	uint32_t high = dm_slots(f->dev), more = URXE_MAX_DM - high;
	int fd, ret;

	if (!more)
		return fabric_fail(ENOMEM, "device memory is used up");
	if (more > URXE_DM_FIRST)
		more = URXE_DM_FIRST;
	fd = openat(f->dirfd, "device", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fabric_fail(errno, "cannot open the device file: %s",
				   strerror(errno));
	ret = arena_reserve(fd, (char *)&f->dev->dm[high] - (char *)f->dev,
			    more * sizeof(f->dev->dm[0]));
	close(fd);
	if (!ret)
		cas_acq_rel(&f->dev->dm_high, &high, high + more);
	return ret;
}

/* The pages of a slot.  False: it has none, or is damaged. */
static bool dm_slot_range(const struct urxe_fabric *f, uint32_t slot,
			  uint32_t *first, uint32_t *end)
{
	const struct urxe_dm_slot *d = &f->dev->dm[slot];
	const uint64_t heap_pages = f->dm_bytes / URXE_PAGE;
	const uint64_t at = d->offset / URXE_PAGE, pages = d->pages;

	if (!pages || at >= heap_pages || pages > heap_pages - at)
		return false;
	*first = at;
	*end = at + pages;
	return true;
}

/* Find a free slot.  On success the device lock is held.  -errno */
static int dm_slot_lock(struct urxe_fabric *f)
{
	int ret, slot;

	for (;;) {
		/* page faults occur here, not while the lock is held */
		slot = dm_slot_find(f->dev);
		ret = slot < 0 ? dm_slots_more(f) : fabric_lock(f);
		if (ret)
			return ret;
		if (slot < 0)
			continue;
		slot = dm_slot_find(f->dev);
		if (slot >= 0)
			return slot;
		fabric_unlock(f);
	}
}

/*
 * Find a free slot and free pages for it, aligned to align pages, or to least
 * if that fails.  On success the device lock is held.  -errno
 */
static int dm_slot_take(struct urxe_fabric *f, uint32_t pages, uint32_t align,
			uint32_t least, uint64_t *offset)
{
	const uint32_t heap_pages = f->dm_bytes / URXE_PAGE;
	struct urxe_dev *dev = f->dev;
	uint32_t first;
	int slot;

	slot = dm_slot_lock(f);
	if (slot < 0)
		return slot;
	first = bitmap_find(dev->dm_map, heap_pages, 0, pages, align);
	if (first == heap_pages && align > least)
		first = bitmap_find(dev->dm_map, heap_pages, 0, pages, least);
	if (first == heap_pages) {
		fabric_unlock(f);
		return fabric_fail(ENOMEM, "device memory is used up");
	}
	bitmap_set(dev->dm_map, first, pages);
	*offset = (uint64_t)first * URXE_PAGE;
	dev->dm[slot].offset = *offset;
	dev->dm[slot].pages = pages;
	dev->dm[slot].share = URXE_DM_ALONE;
	return slot;
}

/* Free a slot and its pages in the bitmap. */
static int dm_slot_give_back(struct urxe_fabric *f, uint32_t slot)
{
	uint32_t first, end;
	int ret;

	ret = fabric_lock(f);
	if (ret)
		return ret; /* it is freed with its context */
	store_relaxed(&f->dev->dm[slot].used, 0);
	if (dm_slot_range(f, slot, &first, &end))
		bitmap_clear(f->dev->dm_map, first, end - first);
	fabric_unlock(f);
	return 0;
}

static int dm_heap_take(struct urxe_fabric *f, uint32_t ctx, uint32_t ctx_gen,
			uint64_t length, uint32_t log_align)
{
	struct urxe_dev *dev = f->dev;
	const uint32_t unit = URXE_DM_UNIT(f->dm_bytes / URXE_PAGE);
	uint32_t pages, align, least;
	struct urxe_dm_slot *d;
	uint64_t offset = 0;
	int slot, ret;

	if (!length || log_align > 63)
		return -EINVAL;
	if (length > f->dm_bytes || 1ull << log_align > f->dm_bytes)
		return fabric_fail(
			ENOMEM,
			"length or alignment exceeds the %llu bytes of device memory; URXE_DM_SIZE sets their number",
			(unsigned long long)f->dm_bytes);
	ret = dm_heap_map(f);
	if (ret)
		return ret;
	pages = (length + URXE_PAGE - 1) / URXE_PAGE;
	pages = (pages + unit - 1) / unit * unit;
	if (pages > f->dm_bytes / URXE_PAGE)
		pages = f->dm_bytes / URXE_PAGE;
	least = align = 1ull << log_align > URXE_PAGE ?
				(1ull << log_align) / URXE_PAGE :
				1;
	if (length >= CHUNK && align < CHUNK_PAGES)
		align = CHUNK_PAGES;

	slot = dm_slot_take(f, pages, align, least, &offset);
	if (slot < 0)
		return slot;
	d = &dev->dm[slot];
	d->length = length;
	d->ctx_gen = ctx_gen;
	store_release(&d->used, ctx + 1);
	fabric_unlock(f);

	ret = dm_heap_reserve(f, offset, (uint64_t)pages * URXE_PAGE);
	if (ret) {
		dm_slot_give_back(f, slot);
		return ret;
	}
	memset(f->dm + offset, 0, (uint64_t)pages * URXE_PAGE);
	store_release(&d->refs,
		      URXE_DM_REFS(URXE_DM_MADE(load_relaxed(&d->refs)) + 1,
				   1));
	return slot;
}

int dm_heap_alloc(struct urxe_fabric *f, uint32_t ctx, uint32_t ctx_gen,
		  uint64_t length, uint32_t log_align)
{
	int slot;

	do {
		slot = dm_heap_take(f, ctx, ctx_gen, length, log_align);
	} while (slot == -ENOMEM && fabric_reap(f));
	return slot;
}

/*
 * Under the lock: extend the slot to the whole of its first and last chunk if
 * the rest of them is free, so that dm_heap_release() returns them.
 */
static void dm_slot_grow(struct urxe_fabric *f, uint32_t slot)
{
	const uint32_t heap_pages = f->dm_bytes / URXE_PAGE;
	struct urxe_dm_slot *d = &f->dev->dm[slot];
	uint32_t first, end, start, stop;

	if (!dm_slot_range(f, slot, &first, &end))
		return;
	start = first / CHUNK_PAGES * CHUNK_PAGES;
	stop = (end + CHUNK_PAGES - 1) / CHUNK_PAGES * CHUNK_PAGES;
	if (stop <= heap_pages && bitmap_try_set(f->dev->dm_map, end, stop - end))
		end = stop;
	if (bitmap_try_set(f->dev->dm_map, start, first - start))
		first = start;
	d->offset = (uint64_t)first * URXE_PAGE;
	d->pages = end - first;
}

/* Under the lock: does another live slot have the same pages? */
static bool dm_slot_has_others(const struct urxe_fabric *f, uint32_t slot)
{
	const struct urxe_dm_slot *d = &f->dev->dm[slot], *o;
	uint32_t i;

	for (i = 0; d->share != URXE_DM_ALONE && i < dm_slots(f->dev); i++) {
		o = &f->dev->dm[i];
		if (i != slot && load_relaxed(&o->used) &&
		    o->share != URXE_DM_ALONE && o->offset == d->offset &&
		    URXE_DM_COUNT(load_relaxed(&o->refs)))
			return true;
	}
	return false;
}

/*
 * Under the lock, with a count of 0: determine the pages that are freed with
 * the slot.  There are none while another slot has them.
 */
static void dm_slot_let_go(struct urxe_fabric *f, uint32_t slot)
{
	if (dm_slot_has_others(f, slot))
		f->dev->dm[slot].pages = 0;
	else
		dm_slot_grow(f, slot);
}

/* Second step of freeing, without the lock: release pages, then the slot. */
static int dm_slot_finish(struct urxe_fabric *f, uint32_t slot)
{
	uint32_t first, end;

	if (dm_slot_range(f, slot, &first, &end))
		dm_heap_release(f, (uint64_t)first * URXE_PAGE,
				(uint64_t)(end - first) * URXE_PAGE);
	return dm_slot_give_back(f, slot);
}

int dm_heap_reclaim(struct urxe_fabric *f, uint32_t slot)
{
	struct urxe_dm_slot *d = &f->dev->dm[slot];
	int ret;

	ret = fabric_lock(f);
	if (ret)
		return ret;
	store_relaxed(&d->refs,
		      URXE_DM_REFS(URXE_DM_MADE(load_relaxed(&d->refs)), 0));
	dm_slot_let_go(f, slot);
	fabric_unlock(f);
	return dm_slot_finish(f, slot);
}

void dm_heap_recover(struct urxe_fabric *f)
{
	uint32_t i, first, end;

	memset(f->dev->dm_map, 0, sizeof(f->dev->dm_map));
	for (i = 0; i < dm_slots(f->dev); i++)
		if (load_relaxed(&f->dev->dm[i].used) &&
		    dm_slot_range(f, i, &first, &end))
			bitmap_set(f->dev->dm_map, first, end - first);
}

/*
 * Increment the count (hold), or change it from 1 to 0, if the slot still has
 * the allocation `made`.
 */
static int dm_heap_count(struct urxe_fabric *f, uint32_t slot, uint32_t made,
			 bool hold)
{
	_Atomic uint64_t *refs;
	uint32_t count;
	uint64_t word;

	if (slot >= dm_slots(f->dev))
		return -EINVAL;
	refs = &f->dev->dm[slot].refs;
	word = load_relaxed(refs);
	do {
		count = URXE_DM_COUNT(word);
		if (URXE_DM_MADE(word) != made || !count)
			return fabric_fail(ENOENT,
					   "the device memory was freed");
		if (!hold && count != 1)
			return fabric_fail(
				EBUSY,
				"the device memory is still used by an MR");
		if (hold && count > URXE_MAX_CTX * URXE_MAX_MR)
			return fabric_fail(
				EPROTO,
				"invalid MR count of the device memory");
		count = hold ? count + 1 : 0;
	} while (!cas_acq_rel(refs, &word, URXE_DM_REFS(made, count)));
	return 0;
}

int dm_heap_hold(struct urxe_fabric *f, uint32_t slot, uint32_t made)
{
	return dm_heap_count(f, slot, made, true);
}

void dm_heap_put(struct urxe_fabric *f, uint32_t slot)
{
	struct urxe_dm_slot *d;
	uint32_t owner;
	uint64_t word;

	if (slot >= URXE_MAX_DM)
		return;
	d = &f->dev->dm[slot];
	owner = load_relaxed(&d->used) - 1;
	word = fetch_sub_release(&d->refs, 1);
	if (d->share == URXE_DM_OF_MR &&
	    !dm_heap_free(f, slot, URXE_DM_MADE(word)) &&
	    owner < URXE_MAX_CTX)
		fabric_obj_put(f, owner, URXE_OBJ_DM);
}

int dm_heap_free(struct urxe_fabric *f, uint32_t slot, uint32_t made)
{
	int ret = fabric_lock(f);

	if (ret)
		return ret;
	ret = dm_heap_count(f, slot, made, false);
	if (!ret)
		dm_slot_let_go(f, slot);
	fabric_unlock(f);
	if (!ret)
		dm_slot_finish(f, slot);
	return ret;
}

int dm_heap_share(struct urxe_fabric *f, uint32_t slot, uint32_t made,
		  uint32_t ctx, uint32_t ctx_gen)
{
	struct urxe_dm_slot *from, *d;
	uint64_t refs;
	int to;

	to = dm_slot_lock(f);
	if (to < 0)
		return to;
	from = &f->dev->dm[slot];
	d = &f->dev->dm[to];
	refs = slot < dm_slots(f->dev) ? load_acquire(&from->refs) : 0;
	/* slots of MRs are never exported */
	if (URXE_DM_MADE(refs) != made || !URXE_DM_COUNT(refs) ||
	    from->share == URXE_DM_OF_MR) {
		fabric_unlock(f);
		return fabric_fail(ENOENT, "the device memory was freed");
	}
	from->share = URXE_DM_SHARED;
	d->offset = from->offset;
	d->length = from->length;
	d->pages = from->pages;
	d->share = URXE_DM_OF_MR;
	d->ctx_gen = ctx_gen;
	store_release(&d->used, ctx + 1);
	made = URXE_DM_MADE(load_relaxed(&d->refs)) + 1;
	store_release(&d->refs, URXE_DM_REFS(made, 2)); /* slot and MR */
	fabric_unlock(f);
	return to;
}
