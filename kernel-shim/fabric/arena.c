// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arenas: a context's part of the shared memory, one sparse file each
 * (struct urxe_arena).  It contains the context's objects and a heap for its
 * rings.
 *
 * fabric_context_open() creates an arena; its owner and the peers map it.
 * Memory is reserved before it is used (arena_reserve), so a full file system
 * is an error of the caller and not a SIGBUS.
 *
 * The allocators are bitmaps that are changed by compare-and-swap
 * (shared/bitmap.h) and need no lock.  Free ring memory is zero.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log2.h"
#include "fabric.h"
#include "internal.h"
#include "shared/bitmap.h"

static uint64_t namespace_ino(const char *path)
{
	struct stat st;
	int saved = errno;
	uint64_t ino;

	ino = stat(path, &st) ? 0 : st.st_ino;
	errno = saved;
	return ino;
}

uint64_t fabric_pidns(void)
{
	return namespace_ino("/proc/self/ns/pid");
}

uint64_t fabric_netns(void)
{
	return namespace_ino("/proc/self/ns/net");
}

int arena_init(int fd, uint32_t slot, uint32_t gen, uint32_t hca,
	       const char comm[16])
{
	const size_t head = offsetof(struct urxe_arena, file);
	struct urxe_arena *a;
	int ret;

	ret = sparse_allowed(URXE_ARENA_SIZE);
	if (ret)
		return ret;
	if (ftruncate(fd, URXE_ARENA_SIZE))
		return -errno;
	ret = arena_reserve(fd, 0, head);
	if (ret)
		return ret;
	a = mmap(NULL, head, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (a == MAP_FAILED)
		return -errno;
	memcpy(a->magic, URXE_ARENA_MAGIC, sizeof(a->magic));
	a->version = urxe_layout_version;
	a->slot = slot;
	a->gen = gen;
	a->hca = hca;
	a->pid = getpid();
	a->pidns = fabric_pidns();
	memcpy(a->comm, comm, sizeof(a->comm));
	a->key_map[0] = 1; /* index 0 is never a key */
	a->key_next = 1;
	/* handles start at 1, so that 0 is never valid */
	store_relaxed(&a->pd[0].live, 1);
	a->cq_map[0] = 1;
	a->srq_map[0] = 1;
	a->comp_cntr_map[0] = 1;
	munmap(a, head);
	return 0;
}

int arena_map(int fd, struct urxe_arena **out)
{
	struct urxe_arena *a;
	void *map;
	int ret;

	ret = layout_map(fd, URXE_ARENA_SIZE, URXE_ARENA_MAGIC, &map);
	if (ret)
		return ret;
	a = map;
	if (a->slot >= URXE_MAX_CTX) {
		arena_unmap(a);
		return -EPROTO;
	}
	madvise(a, URXE_ARENA_SIZE, MADV_DONTDUMP);
	*out = a;
	return 0;
}

void arena_unmap(struct urxe_arena *a)
{
	munmap(a, URXE_ARENA_SIZE);
}

int arena_map_peer(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
		   struct urxe_arena **out, int *fd_out)
{
	struct urxe_arena *a;
	char name[32];
	int fd, ret;

	snprintf(name, sizeof(name), URXE_ARENA_NAME, slot, gen);
	fd = openat(f->dirfd, name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ENXIO : -errno;
	ret = arena_map(fd, &a);
	if (ret)
		goto err_close;
	if (a->slot != slot || a->gen != gen) {
		ret = -EPROTO;
		goto err_unmap;
	}
	*out = a;
	*fd_out = fd;
	return 0;

err_unmap:
	arena_unmap(a);
err_close:
	close(fd);
	return ret;
}

/* The path of the descriptor is DIR/ctx/SLOT.GEN; DIR is returned. */
int arena_fabric_dir(int fd, char *buf, size_t len)
{
	char path[320], *name, *sub = NULL;
	int ret;

	ret = file_path(fd, path, sizeof(path));
	if (ret)
		return ret;
	name = strrchr(path, '/');
	if (name) {
		*name = 0;
		sub = strrchr(path, '/');
	}
	if (!sub || strcmp(sub, "/ctx"))
		return -EPROTO;
	*sub = 0;
	if ((size_t)snprintf(buf, len, "%s", path) >= len)
		return -ENAMETOOLONG;
	return 0;
}

int arena_lock(struct urxe_fabric *f, struct urxe_arena *a)
{
	int ret = robust_lock(f, &a->lock, "the lock of a context's keys");

	return ret < 0 ? ret : 0;
}

void arena_unlock(struct urxe_fabric *f, struct urxe_arena *a)
{
	robust_unlock(f, &a->lock);
}

int arena_index_take(uint64_t *map, uint32_t bits)
{
	uint32_t i = bitmap_take(map, bits, 0, 1, 1);

	return i < bits ? (int)i : -ENOMEM;
}

int arena_reserve(int fd, uint64_t offset, uint64_t len)
{
	int ret;

	do {
		ret = posix_fallocate(fd, (off_t)offset, (off_t)len);
	} while (ret == EINTR);
	if (ret)
		return fabric_fail(ENOMEM,
				   "no room for %llu bytes of shared memory: %s",
				   (unsigned long long)len, strerror(ret));
	return 0;
}

uint64_t arena_alloc(struct urxe_arena *a, int fd, uint64_t len)
{
	const uint32_t pages = (len + URXE_PAGE - 1) / URXE_PAGE;
	uint64_t offset = 0;
	uint32_t first;

	first = bitmap_take(a->heap_map, URXE_HEAP_PAGES,
			    load_relaxed(&a->heap_next) % URXE_HEAP_PAGES,
			    pages, 1);
	if (first < URXE_HEAP_PAGES) {
		store_relaxed(&a->heap_next, first + pages);
		offset = URXE_HEAP_OFFSET + (uint64_t)first * URXE_PAGE;
	}
	if (offset && arena_reserve(fd, offset, (uint64_t)pages * URXE_PAGE)) {
		arena_free(a, fd, offset, len);
		return 0;
	}
	return offset;
}

void arena_free(struct urxe_arena *a, int fd, uint64_t offset, uint64_t len)
{
	const uint64_t bytes = (len + URXE_PAGE - 1) / URXE_PAGE * URXE_PAGE;

	/* return the memory to the system; it reads as zero when reused */
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)offset, (off_t)bytes))
		memset((char *)a + offset, 0, bytes);
	bitmap_clear(a->heap_map, (offset - URXE_HEAP_OFFSET) / URXE_PAGE,
		     bytes / URXE_PAGE);
}

#define SMALL_OFFSET offsetof(struct urxe_arena, small)
#define SMALL_PER_PAGE (URXE_PAGE / URXE_SMALL_UNIT)
static_assert(64 % SMALL_PER_PAGE == 0, "a page's bits are in one word");

static uint32_t small_units(uint64_t len)
{
	/* a power of two, aligned to its size: it does not cross a page */
	return pow2_up(
		(uint32_t)((len + URXE_SMALL_UNIT - 1) / URXE_SMALL_UNIT));
}

static bool small_has(uint64_t offset)
{
	return offset >= SMALL_OFFSET &&
	       offset < SMALL_OFFSET + sizeof(((struct urxe_arena *)0)->small);
}

/*
 * Allocate a ring of at most URXE_SMALL_MAX bytes.  Returns its offset, or 0
 * if there is no memory.  Unused memory is zero already.
 */
static uint64_t small_alloc(struct urxe_arena *a, int fd, uint64_t len)
{
	const uint32_t n = small_units(len);
	uint32_t first;
	uint64_t offset;

	first = bitmap_take(a->small_map, URXE_SMALL_UNITS, 0, n, n);
	if (first >= URXE_SMALL_UNITS)
		return 0;
	offset = SMALL_OFFSET + (uint64_t)first * URXE_SMALL_UNIT;
	if (!arena_reserve(fd, offset, (uint64_t)n * URXE_SMALL_UNIT))
		return offset;
	bitmap_clear(a->small_map, first, n);
	return 0;
}

/*
 * The call that frees the last units of a page first claims the whole page,
 * returns its memory to the system, and then frees the page.
 */
static void small_free(struct urxe_arena *a, int fd, uint64_t offset,
		       uint64_t len)
{
	const uint32_t n = small_units(len),
		       first = (offset - SMALL_OFFSET) / URXE_SMALL_UNIT,
		       page = first / SMALL_PER_PAGE * SMALL_PER_PAGE;
	_Atomic uint64_t *word = bitmap_word(a->small_map, first);
	uint64_t old, mine, all;
	uint32_t in_word;
	bool last;

	mine = bitmap_mask(first, n, &in_word);
	all = bitmap_mask(page, SMALL_PER_PAGE, &in_word);
	memset((char *)a + offset, 0, (uint64_t)n * URXE_SMALL_UNIT);
	old = load_relaxed(word);
	do {
		last = (old & all) == mine;
	} while (!cas_acq_rel(word, &old, last ? old | all : old & ~mine));
	if (!last)
		return;
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  (off_t)(SMALL_OFFSET + (uint64_t)page * URXE_SMALL_UNIT),
		  URXE_PAGE);
	bitmap_clear(a->small_map, page, SMALL_PER_PAGE);
}

uint64_t arena_alloc_ring(struct urxe_arena *a, int fd, uint64_t len)
{
	uint64_t offset = 0;

	if (len <= URXE_SMALL_MAX)
		offset = small_alloc(a, fd, len);
	return offset ? offset : arena_alloc(a, fd, len);
}

void arena_free_ring(struct urxe_arena *a, int fd, uint64_t offset,
		     uint64_t len)
{
	if (small_has(offset))
		small_free(a, fd, offset, len);
	else
		arena_free(a, fd, offset, len);
}

/* Bytes from offset to the end of its allocator's area; 0: not in an area. */
static uint64_t arena_room(uint64_t offset)
{
	if (small_has(offset))
		return SMALL_OFFSET + sizeof(((struct urxe_arena *)0)->small) -
		       offset;
	return offset < URXE_HEAP_OFFSET || offset > URXE_ARENA_SIZE ?
		       0 :
		       URXE_ARENA_SIZE - offset;
}

void *arena_ptr(struct urxe_arena *a, uint64_t offset, uint64_t len)
{
	if (offset % URXE_LINE || len > arena_room(offset) ||
	    !arena_room(offset))
		return NULL;
	return (char *)a + offset;
}
