// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Device memory: a heap in shared huge pages that every process of the
 * fabric maps.
 *
 * Which pages, in this order: a file on a writable hugetlbfs that has room
 * for the whole heap; else tmpfs, its 2 MiB chunks collapsed with
 * MADV_COLLAPSE (Linux 6.1, works for an unprivileged user whatever
 * shmem_enabled says); else MADV_HUGEPAGE; else ordinary pages.
 *
 * Memory is reserved with fallocate when it is allocated, a whole chunk when
 * the file system has plenty, so that a full file system is ENOMEM now and
 * never SIGBUS later.  A chunk goes back when nothing in it is in use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "fabric.h"
#include "internal.h"
#include "shared/bitmap.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

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

/* Pages of 2 MiB that nobody has; a mount without a size= says 0 of 0. */
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

/* A hugetlbfs of 2 MiB pages with room for the heap: its file's path. */
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
		if ((size_t)snprintf(path, len, "%s/urxe-%u-%s-%llx",
				     m.mnt_dir, (unsigned int)geteuid(),
				     base ? base + 1 : f->dir,
				     (unsigned long long)f->dev->node_guid) >=
		    len)
			continue;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST && !unlink(path))
			fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
				  0600);
	}
	endmntent(mounts);
	return fd;
}

/* The heap's file; the first caller makes it. */
static int dm_heap_open(struct urxe_fabric *f)
{
	struct urxe_dev *dev = f->dev;
	char path[sizeof(dev->dm_path)];
	int fd;

	if (dev->dm_path[0])
		return open(dev->dm_path, O_RDWR | O_CLOEXEC);
	fd = openat(f->dirfd, "dm", O_RDWR | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	fd = hugetlb_create(f, path, sizeof(path));
	if (fd >= 0 && !ftruncate(fd, (off_t)f->dm_bytes)) {
		store_relaxed(&dev->dm_kind, URXE_DM_HUGETLB);
		memcpy(dev->dm_path, path, sizeof(path));
		return fd;
	}
	if (fd >= 0) {
		unlink(path);
		close(fd);
	}
	fd = openat(f->dirfd, "dm", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0 && ftruncate(fd, (off_t)f->dm_bytes)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Huge mappings need address and offset equal modulo 2 MiB. */
static char *dm_heap_map_aligned(int fd, uint64_t bytes)
{
	char *area, *dm;
	size_t lead;

	area = mmap(NULL, bytes + CHUNK, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED)
		return NULL;
	lead = (CHUNK - (uintptr_t)area % CHUNK) % CHUNK;
	dm = mmap(area + lead, bytes, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
	if (dm == MAP_FAILED) {
		munmap(area, bytes + CHUNK);
		return NULL;
	}
	if (lead)
		munmap(area, lead);
	munmap(dm + bytes, CHUNK - lead);
	madvise(dm, bytes, MADV_DONTDUMP);
	return dm;
}

int dm_heap_map(struct urxe_fabric *f)
{
	struct stat st;
	int ret, fd;

	ret = fabric_lock(f);
	if (ret)
		return ret;
	if (f->dm)
		goto out;
	fd = dm_heap_open(f);
	if (fd < 0) {
		ret = fabric_fail(errno, "the heap of device memory: %s",
				  strerror(errno));
		goto out;
	}
	if (fstat(fd, &st) || st.st_size < (off_t)f->dm_bytes) {
		ret = fabric_fail(EPROTO, "the heap of device memory is short");
		goto err_close;
	}
	f->dm = dm_heap_map_aligned(fd, f->dm_bytes);
	if (!f->dm) {
		ret = -ENOMEM;
		goto err_close;
	}
	f->dm_fd = fd;
	goto out;

err_close:
	close(fd);
out:
	fabric_unlock(f);
	return ret;
}

/* Ask for huge pages under [first, first + n) chunks; remember what came. */
static void dm_heap_make_huge(struct urxe_fabric *f, uint64_t offset,
			      uint64_t len)
{
	char *p = f->dm + offset;
	uint32_t kind = URXE_DM_SMALL;

	if (load_relaxed(&f->dev->dm_kind) == URXE_DM_HUGETLB)
		return;
	if (!madvise(p, len, MADV_POPULATE_WRITE) &&
	    !madvise(p, len, MADV_COLLAPSE))
		kind = URXE_DM_COLLAPSED;
	else if (!madvise(p, len, MADV_HUGEPAGE))
		kind = URXE_DM_ADVISED;
	store_relaxed(&f->dev->dm_kind, kind);
}

/*
 * Reserve pages: whole chunks if that leaves the file system three quarters
 * of its free space, else only what is asked for.
 */
static int dm_heap_reserve(struct urxe_fabric *f, uint64_t offset, uint64_t len)
{
	uint64_t start = offset / CHUNK * CHUNK;
	uint64_t end = (offset + len + CHUNK - 1) / CHUNK * CHUNK;
	bool huge = load_relaxed(&f->dev->dm_kind) == URXE_DM_HUGETLB;
	struct statfs fs;

	if (huge || (!fstatfs(f->dm_fd, &fs) &&
		     (uint64_t)fs.f_bavail * fs.f_bsize / 4 > end - start)) {
		if (!fallocate(f->dm_fd, 0, (off_t)start,
			       (off_t)(end - start))) {
			dm_heap_make_huge(f, start, end - start);
			return 0;
		}
	}
	if (huge)
		return -ENOMEM;
	if (load_relaxed(&f->dev->dm_kind) == URXE_DM_UNUSED)
		store_relaxed(&f->dev->dm_kind, URXE_DM_SMALL);
	return arena_reserve(f->dm_fd, offset, len);
}

/* Chunks that hold nothing any more go back to the system. */
static void dm_heap_release(struct urxe_fabric *f, uint64_t offset,
			    uint64_t len)
{
	uint64_t c, last = (offset + len - 1) / CHUNK;
	int fd = f->dm_fd;
	unsigned int w;

	if (!f->dm)
		fd = dm_heap_open(f);
	if (fd < 0)
		return;
	for (c = offset / CHUNK; c <= last; c++) {
		for (w = 0; w < CHUNK_PAGES / 64; w++)
			if (f->dev->dm_map[c * CHUNK_PAGES / 64 + w])
				break;
		if (w == CHUNK_PAGES / 64 &&
		    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)(c * CHUNK), CHUNK))
			break;
	}
	if (!f->dm)
		close(fd);
}

static int dm_slot_find(struct urxe_dev *dev)
{
	int i;

	for (i = 0; i < URXE_MAX_DM; i++)
		if (!load_relaxed(&dev->dm[i].used))
			return i;
	return -ENOMEM;
}

int dm_heap_alloc(struct urxe_fabric *f, uint32_t ctx, uint32_t ctx_gen,
		  uint64_t length, uint32_t log_align)
{
	struct urxe_dev *dev = f->dev;
	const uint32_t heap_pages = f->dm_bytes / URXE_PAGE;
	uint32_t pages, align, least, first;
	struct urxe_dm_slot *d;
	uint64_t offset;
	int slot, ret;

	if (!length || log_align > 63)
		return -EINVAL;
	if (length > f->dm_bytes || 1ull << log_align > f->dm_bytes)
		return fabric_fail(ENOMEM, "the device has %llu bytes in all",
				   (unsigned long long)f->dm_bytes);
	ret = dm_heap_map(f);
	if (ret)
		return ret;
	pages = (length + URXE_PAGE - 1) / URXE_PAGE;
	least = align = 1ull << log_align > URXE_PAGE ?
				(1ull << log_align) / URXE_PAGE :
				1;
	if (length >= CHUNK && align < CHUNK_PAGES)
		align = CHUNK_PAGES;

	ret = fabric_lock(f);
	if (ret)
		return ret;
	slot = dm_slot_find(dev);
	if (slot < 0)
		goto out;
	first = bitmap_find(dev->dm_map, heap_pages, 0, pages, align);
	if (first == heap_pages && align > least)
		first = bitmap_find(dev->dm_map, heap_pages, 0, pages, least);
	if (first == heap_pages) {
		slot = fabric_fail(ENOMEM, "device memory is used up");
		goto out;
	}
	d = &dev->dm[slot];
	offset = (uint64_t)first * URXE_PAGE;
	ret = dm_heap_reserve(f, offset, (uint64_t)pages * URXE_PAGE);
	if (ret) {
		slot = ret;
		goto out;
	}
	memset(f->dm + offset, 0, (uint64_t)pages * URXE_PAGE);
	d->offset = offset;
	bitmap_set(dev->dm_map, first, pages);
	d->length = length;
	d->pages = pages;
	d->ctx_gen = ctx_gen;
	store_relaxed(&d->refs,
		      URXE_DM_REFS(URXE_DM_MADE(load_relaxed(&d->refs)) + 1,
				   1));
	store_release(&d->used, ctx + 1);
out:
	fabric_unlock(f);
	return slot;
}

void dm_heap_free_locked(struct urxe_fabric *f, uint32_t slot)
{
	struct urxe_dm_slot *d = &f->dev->dm[slot];
	const uint64_t heap_pages = f->dm_bytes / URXE_PAGE;
	uint64_t first = d->offset / URXE_PAGE, pages = d->pages;

	store_relaxed(&d->refs,
		      URXE_DM_REFS(URXE_DM_MADE(load_relaxed(&d->refs)), 0));
	store_relaxed(&d->used, 0);
	if (first >= heap_pages || pages > heap_pages - first || !pages)
		return;
	bitmap_clear(f->dev->dm_map, first, pages);
	dm_heap_release(f, first * URXE_PAGE, pages * URXE_PAGE);
}

/* From a count to another, if the slot is still what it was when made. */
static int dm_heap_count(struct urxe_fabric *f, uint32_t slot, uint32_t made,
			 bool hold)
{
	_Atomic uint64_t *refs;
	uint32_t count;
	uint64_t word;

	if (slot >= URXE_MAX_DM)
		return -EINVAL;
	refs = &f->dev->dm[slot].refs;
	word = load_relaxed(refs);
	do {
		count = URXE_DM_COUNT(word);
		if (URXE_DM_MADE(word) != made || !count)
			return fabric_fail(ENOENT,
					   "this device memory was freed");
		if (!hold && count != 1)
			return fabric_fail(EBUSY,
					   "an MR is still on this device memory");
		if (hold && count > URXE_MAX_CTX * URXE_MAX_MR)
			return fabric_fail(EPROTO, "a broken count of MRs");
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
	fetch_sub_release(&f->dev->dm[slot].refs, 1);
}

int dm_heap_free(struct urxe_fabric *f, uint32_t slot, uint32_t made)
{
	int ret = fabric_lock(f);

	if (ret)
		return ret;
	ret = dm_heap_count(f, slot, made, false);
	if (!ret)
		dm_heap_free_locked(f, slot);
	fabric_unlock(f);
	return ret;
}
