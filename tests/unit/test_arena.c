// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Arenas: heap, bounds checks of offsets, and files that are not arenas. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#define MiB (1ull << 20)

START_TEST(fresh_arena)
{
	struct urxe_fabric *f = new_fabric();
	char dir[256];
	struct urxe_arena *a;
	int fd;

	a = open_arena(f, &fd);
	ck_assert_int_eq(a->pid, getpid());
	ck_assert_uint_lt(a->slot, URXE_MAX_CTX);
	ck_assert_uint_eq(a->gen, atomic_load(&f->dev->ctx[a->slot].gen));
	ck_assert_str_eq(a->comm, f->dev->ctx[a->slot].comm);
	/* number 0 is reserved: key, PD, CQ, SRQ */
	ck_assert(a->key_map[0] == 1);
	ck_assert(a->cq_map[0] == 1);
	ck_assert(a->srq_map[0] == 1);
	ck_assert_uint_eq(atomic_load(&a->pd[0].live), 1);
	ck_assert_int_eq(arena_fabric_dir(fd, dir, sizeof(dir)), 0);
	ck_assert_str_eq(dir, f->dir);
	ck_assert_int_eq(arena_fabric_dir(fd, dir, 4), -ENAMETOOLONG);
	ck_assert_int_eq(arena_fabric_dir(f->dirfd, dir, sizeof(dir)), -EPROTO);
	arena_unmap(a);
	close(fd);
	fabric_close(f);
}
END_TEST

/*
 * arena_fabric_dir() finds the directory also if its path contains "ctx"
 * several times.
 */
START_TEST(directories_of_the_same_names)
{
	char dir[256], path[300];
	struct urxe_fabric *f;
	int fd;

	snprintf(path, sizeof(path), "%s/ctx", new_dir());
	*strrchr(path, '/') = 0;
	ck_assert_int_eq(mkdir(path, 0700), 0);
	strcat(path, "/ctx/ctx");
	ck_assert_int_eq(fabric_open(path, true, &f), 0);
	fd = open_context(f);
	ck_assert_int_eq(arena_fabric_dir(fd, dir, sizeof(dir)), 0);
	ck_assert_str_eq(dir, path);
	close(fd);
	fabric_close(f);
}
END_TEST

START_TEST(invalid_arena_file)
{
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a, *b = (void *)1;
	int fd, other;

	a = open_arena(f, &fd);
	ck_assert_int_eq(arena_map(-1, &b), -EBADF);
	ck_assert_int_eq(arena_map(f->dirfd, &b), -EPROTO);
	other = memfd_create("other", MFD_CLOEXEC);
	ck_assert_int_eq(arena_map(other, &b), -EPROTO);
	/* a file of the right size needs a valid header, too */
	ck_assert_int_eq(ftruncate(other, URXE_ARENA_SIZE), 0);
	ck_assert_int_eq(arena_map(other, &b), -EPROTO);
	a->version++;
	ck_assert_int_eq(arena_map(fd, &b), -EPROTO);
	a->version--;
	a->slot += URXE_MAX_CTX;
	ck_assert_int_eq(arena_map(fd, &b), -EPROTO);
	a->slot -= URXE_MAX_CTX;
	a->magic[0] = 'U';
	ck_assert_int_eq(arena_map(fd, &b), -EPROTO);
	a->magic[0] = 'u';
	ck_assert_ptr_eq(b, (void *)1);
	ck_assert_int_eq(arena_map(fd, &b), 0);
	fabric_close(f);
}
END_TEST

/*
 * A peer's arena is mapped only for the slot and generation that were asked
 * for, and stays mapped when the peer has ended.
 */
START_TEST(map_peer)
{
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a, *b, *c = (void *)1;
	int fd, fdb, fdc = 77;

	a = open_arena(f, &fd);
	ck_assert_int_eq(arena_map_peer(f, a->slot, a->gen, &b, &fdb), 0);
	ck_assert_int_eq(fcntl(fdb, F_GETFD), FD_CLOEXEC);
	atomic_store(&b->wake.count, 4711);
	ck_assert_uint_eq(atomic_load(&a->wake.count), 4711);
	ck_assert(arena_fd_alive(fdb));
	ck_assert_int_eq(arena_map_peer(f, a->slot, a->gen + 1, &c, &fdc),
			 -ENXIO);
	ck_assert_int_eq(arena_map_peer(f, a->slot + 1, a->gen, &c, &fdc),
			 -ENXIO);
	/* a file whose generation differs from the one in its name */
	a->gen++;
	ck_assert_int_eq(arena_map_peer(f, a->slot, a->gen - 1, &c, &fdc),
			 -EPROTO);
	a->gen--;
	ck_assert_ptr_eq(c, (void *)1);
	ck_assert_int_eq(fdc, 77);
	/* a mapping holds the open file, as a descriptor does */
	close(fd);
	ck_assert(arena_fd_alive(fdb));
	arena_unmap(a);
	ck_assert(!arena_fd_alive(fdb));
	/* the peer's memory stays mapped */
	atomic_store(&b->wake.count, 1);
	fabric_close(f);
}
END_TEST

static bool all_zero(const char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

START_TEST(alloc_and_free)
{
	struct urxe_fabric *f = new_fabric();
	uint64_t len[] = { 1, URXE_PAGE, URXE_PAGE + 1, 1 << 20 };
	uint64_t off[4], again_off;
	struct urxe_arena *a;
	int fd, i, j;
	char *p;

	a = open_arena(f, &fd);
	for (i = 0; i < 4; i++) {
		off[i] = arena_alloc(a, fd, len[i]);
		ck_assert(off[i] >= URXE_HEAP_OFFSET);
		ck_assert(off[i] % URXE_PAGE == 0);
		ck_assert(off[i] + len[i] <= URXE_ARENA_SIZE);
		for (j = 0; j < i; j++)
			ck_assert(off[i] >= off[j] + len[j] ||
				  off[j] >= off[i] + len[i]);
		p = arena_ptr(a, off[i], len[i]);
		ck_assert_ptr_nonnull(p);
		ck_assert(all_zero(p, len[i]));
		memset(p, 0xa5, len[i]);
	}
	for (i = 0; i < 4; i++)
		arena_free(a, fd, off[i], len[i]);
	for (i = 0; i < (int)(URXE_HEAP_PAGES / 64); i++)
		ck_assert(a->heap_map[i] == 0);
	/*
	 * memory is zeroed when it is allocated again, even at the same
	 * offset
	 */
	a->heap_next = 0;
	again_off = arena_alloc(a, fd, 1 << 20);
	ck_assert(again_off == off[0]);
	ck_assert(all_zero(arena_ptr(a, again_off, 1 << 20), 1 << 20));
	arena_unmap(a);
	close(fd);
	fabric_close(f);
}
END_TEST

/* Return the number of pages allocated to the file. */
static long pages_of(int fd)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return (long)(st.st_blocks * 512 / URXE_PAGE);
}

/*
 * Rings of 16 receives share pages.  Pages without a ring are returned to the
 * file system.
 */
START_TEST(small_rings)
{
	enum { RINGS = 64, BYTES = 512 };
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a;
	uint64_t off[RINGS];
	int fd, i, j;
	long before;
	char *p;

	a = open_arena(f, &fd);
	before = pages_of(fd);
	for (j = 0; j < 2; j++) {
		for (i = 0; i < RINGS; i++) {
			off[i] = arena_alloc_ring(a, fd, BYTES);
			p = arena_ptr(a, off[i], BYTES);
			ck_assert_ptr_nonnull(p);
			ck_assert(all_zero(p, BYTES));
			memset(p, i + 1, BYTES);
		}
		for (i = 0; i < RINGS; i++) {
			p = arena_ptr(a, off[i], BYTES);
			ck_assert(p[0] == i + 1 && p[BYTES - 1] == i + 1);
		}
		ck_assert_int_eq(pages_of(fd) - before,
				 RINGS * BYTES / URXE_PAGE);
		/* every second ring: no page becomes free; then the others */
		for (i = 0; i < RINGS; i += 2)
			arena_free_ring(a, fd, off[i], BYTES);
		ck_assert_int_eq(pages_of(fd) - before,
				 RINGS * BYTES / URXE_PAGE);
		for (i = 1; i < RINGS; i += 2)
			arena_free_ring(a, fd, off[i], BYTES);
		ck_assert_int_eq(pages_of(fd), before);
	}
	for (i = 0; i < URXE_SMALL_UNITS / 64; i++)
		ck_assert(a->small_map[i] == 0);
	/* if no small unit is left, or the ring is larger, it gets pages */
	memset(a->small_map, 0xff, sizeof(a->small_map));
	ck_assert(arena_alloc_ring(a, fd, BYTES) >= URXE_HEAP_OFFSET);
	ck_assert(arena_alloc_ring(a, fd, URXE_SMALL_MAX + 1) >=
		  URXE_HEAP_OFFSET);
	arena_unmap(a);
	close(fd);
	fabric_close(f);
}
END_TEST

START_TEST(arena_full)
{
	struct urxe_fabric *f = new_fabric();
	const uint64_t heap = URXE_ARENA_SIZE - URXE_HEAP_OFFSET;
	struct urxe_arena *a;
	uint64_t off, i;
	int fd;

	a = open_arena(f, &fd);
	ck_assert(arena_alloc(a, fd, heap + 1) == 0);
	ck_assert(arena_alloc(a, fd, 1ull << 40) == 0);
	/* mark all pages but one in the middle as allocated */
	for (i = 0; i < URXE_HEAP_PAGES / 64; i++)
		a->heap_map[i] = UINT64_MAX;
	ck_assert(arena_alloc(a, fd, 1) == 0);
	a->heap_map[1000] &= ~(1ull << 7);
	ck_assert(arena_alloc(a, fd, URXE_PAGE + 1) == 0);
	off = arena_alloc(a, fd, URXE_PAGE);
	ck_assert(off == URXE_HEAP_OFFSET + (1000 * 64 + 7) * URXE_PAGE);
	ck_assert(arena_alloc(a, fd, 1) == 0);
	fabric_close(f);
}
END_TEST

#define SMALL offsetof(struct urxe_arena, small)

START_TEST(offset_bounds)
{
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a;
	int fd;

	a = open_arena(f, &fd);
	/* offsets come from shared memory and may have any value */
	ck_assert_ptr_nonnull(arena_ptr(a, URXE_HEAP_OFFSET, 1));
	ck_assert_ptr_nonnull(arena_ptr(a, URXE_ARENA_SIZE - 64, 64));
	ck_assert_ptr_nonnull(arena_ptr(a, URXE_HEAP_OFFSET,
					URXE_ARENA_SIZE - URXE_HEAP_OFFSET));
	ck_assert_ptr_null(arena_ptr(a, 0, 1));
	ck_assert_ptr_nonnull(arena_ptr(a, SMALL, 64));
	ck_assert_ptr_nonnull(arena_ptr(a, SMALL, sizeof(a->small)));
	ck_assert_ptr_null(arena_ptr(a, SMALL, sizeof(a->small) + 1));
	ck_assert_ptr_null(arena_ptr(a, SMALL - 64, 64));
	ck_assert_ptr_null(arena_ptr(a, SMALL + sizeof(a->small), 64));
	ck_assert_ptr_null(arena_ptr(a, URXE_HEAP_OFFSET - 64, 64));
	ck_assert_ptr_null(arena_ptr(a, URXE_HEAP_OFFSET + 8, 8));
	ck_assert_ptr_null(arena_ptr(a, URXE_ARENA_SIZE - 64, 65));
	ck_assert_ptr_null(arena_ptr(a, URXE_ARENA_SIZE, 1));
	ck_assert_ptr_null(arena_ptr(a, URXE_ARENA_SIZE + 64, 1));
	ck_assert_ptr_null(arena_ptr(a, UINT64_MAX - 63, 64));
	ck_assert_ptr_null(arena_ptr(a, URXE_HEAP_OFFSET, UINT64_MAX));
	fabric_close(f);
}
END_TEST

struct stamper {
	struct urxe_fabric *f;
	uint32_t slot, gen;
	uint32_t mark;
};

/* Allocate and free pages, and check that no other process writes to them. */
static int stamp(void *arg)
{
	struct stamper *s = arg;
	uint64_t off[16] = { 0 }, len[16], i, j, k;
	struct urxe_arena *a;
	uint32_t *p;
	int fd;

	if (arena_map_peer(s->f, s->slot, s->gen, &a, &fd))
		return 1;
	for (i = 0; i < 400; i++) {
		j = i % 16;
		if (off[j]) {
			p = arena_ptr(a, off[j], len[j]);
			for (k = 0; k < len[j] / 4; k++)
				if (p[k] != s->mark)
					return 2;
			arena_free(a, fd, off[j], len[j]);
		}
		len[j] = (1 + i % 5) * URXE_PAGE;
		off[j] = arena_alloc(a, fd, len[j]);
		if (!off[j])
			return 3;
		p = arena_ptr(a, off[j], len[j]);
		for (k = 0; k < len[j] / 4; k++) {
			if (p[k])
				return 4;
			p[k] = s->mark;
		}
	}
	return 0;
}

START_TEST(processes)
{
	struct urxe_fabric *f = new_fabric();
	struct stamper s = { .f = f };
	struct urxe_arena *a;
	pid_t pid[4];
	int fd, i;

	a = open_arena(f, &fd);
	s.slot = a->slot;
	s.gen = a->gen;
	for (i = 0; i < 4; i++) {
		s.mark = i + 1;
		pid[i] = spawn(stamp, &s);
	}
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(reap_child(pid[i]), 0);
	fabric_close(f);
}
END_TEST

/*
 * If the file system is full, allocations fail and no access raises SIGBUS.
 */
START_TEST(full_file_system)
{
	const char *dir = tiny_tmpfs(8 * MiB);
	uint64_t off, total = 0;
	struct urxe_fabric *f;
	struct urxe_arena *a;
	char path[200];
	int fd;

	if (!dir)
		return;
	snprintf(path, sizeof(path), "%s/f", dir);
	ck_assert_int_eq(fabric_open(path, true, &f), 0);
	a = open_arena(f, &fd);
	ck_assert(arena_alloc(a, fd, 64 * MiB) == 0);
	ck_assert_str_ne(fabric_why(), "");
	/* every byte that was allocated can be written */
	while ((off = arena_alloc(a, fd, 64 << 10))) {
		memset(arena_ptr(a, off, 64 << 10), 1, 64 << 10);
		total += 64 << 10;
		ck_assert(total < 8 * MiB);
	}
	ck_assert_int_eq(arena_reserve(fd, URXE_ARENA_SIZE / 2, MiB), -ENOMEM);
	/* opening fails if there is no room for the arena */
	ck_assert_int_eq(fabric_context_open(f, 0), -ENOMEM);
	ck_assert_int_eq(count_entries(f, "ctx", ""), 1);
	fabric_close(f);
}
END_TEST

START_TEST(key_table)
{
	uint32_t key = URXE_KEY(URXE_MAX_CTX - 1, URXE_MAX_KEY - 1, 255);

	ck_assert_uint_eq(key, UINT32_MAX);
	key = URXE_KEY(300, 20000, 0x1ab);
	ck_assert_uint_eq(URXE_KEY_CTX(key), 300);
	ck_assert_uint_eq(URXE_KEY_INDEX(key), 20000);
	ck_assert_uint_eq(URXE_KEY_TAG(key), 0xab);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("arena");

	add(s, fresh_arena);
	add(s, directories_of_the_same_names);
	add(s, invalid_arena_file);
	add(s, map_peer);
	add(s, alloc_and_free);
	add(s, small_rings);
	add(s, arena_full);
	add(s, offset_bounds);
	add(s, processes);
	add(s, full_file_system);
	add(s, key_table);
	return run_suite(s);
}
