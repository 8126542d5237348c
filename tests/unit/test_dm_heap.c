// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory: its heap, imports, and processes that die. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#define MiB (1ull << 20)

static int alloc(struct urxe_fabric *f, uint64_t length)
{
	return dm_heap_alloc(f, 1, 1, length, 0);
}

static uint32_t made(struct urxe_fabric *f, int slot)
{
	return URXE_DM_MADE(atomic_load(&f->dev->dm[slot].refs));
}

static int dm_free(struct urxe_fabric *f, int slot)
{
	return dm_heap_free(f, slot, slot < URXE_MAX_DM ? made(f, slot) : 0);
}

static char *dm_ptr(struct urxe_fabric *f, int slot)
{
	return f->dm + f->dev->dm[slot].offset;
}

static bool all_zero(const char *p, size_t n)
{
	return !p[0] && !memcmp(p, p + 1, n - 1);
}

START_TEST(alloc_and_free)
{
	struct urxe_fabric *f = new_fabric();
	int a, b;

	a = alloc(f, 1);
	ck_assert_int_ge(a, 0);
	b = alloc(f, 4096);
	ck_assert_int_ge(b, 0);
	ck_assert_int_ne(a, b);
	ck_assert_uint_eq(f->dev->dm[a].length, 1);
	ck_assert_uint_eq(f->dev->dm[a].offset % 64, 0);
	ck_assert(f->dev->dm[a].offset != f->dev->dm[b].offset);
	ck_assert_uint_eq((uintptr_t)f->dm % (2 * MiB), 0);
	ck_assert(all_zero(dm_ptr(f, b), 4096));
	ck_assert_uint_ne(atomic_load(&f->dev->dm_kind), URXE_DM_UNUSED);
	ck_assert_str_ne(dm_kind_name(atomic_load(&f->dev->dm_kind)), "");
	ck_assert_str_eq(dm_kind_name(99), "unknown");
	ck_assert_int_eq(dm_free(f, a), 0);
	ck_assert_int_eq(dm_free(f, b), 0);
	ck_assert_int_eq(dm_free(f, URXE_MAX_DM), -EINVAL);
	fabric_close(f);
}
END_TEST

/*
 * Pages of an allocation that was imported are freed with the last of the two
 * references, in either order.
 */
START_TEST(pages_of_two)
{
	struct urxe_fabric *f = new_fabric();
	int own, fd, theirs, other;
	char *bytes;

	own = alloc(f, 3 * 4096);
	fd = dm_export(f, own, made(f, own));
	ck_assert_int_ge(fd, 0);
	theirs = dm_import(f, fd, 2, 1);
	ck_assert_int_ge(theirs, 0);
	ck_assert_int_ne(theirs, own);
	bytes = dm_ptr(f, theirs);
	ck_assert_ptr_eq(bytes, dm_ptr(f, own));
	memset(bytes, 7, 3 * 4096);
	if (_i) { /* the owner frees first, or the importer does */
		ck_assert_int_eq(dm_free(f, own), 0);
		ck_assert_int_eq(dm_import(f, fd, 2, 1), -ENOENT);
	} else {
		dm_heap_put(f, theirs);
		ck_assert_int_eq(f->dev->dm[theirs].used, 0);
	}
	other = alloc(f, f->dev->dm_bytes - 3 * 4096);
	ck_assert_int_ge(other, 0);
	ck_assert_int_eq(alloc(f, 1), -ENOMEM);
	ck_assert_int_eq(bytes[0] + bytes[3 * 4096 - 1], 14);
	if (_i)
		dm_heap_put(f, theirs);
	else
		ck_assert_int_eq(dm_free(f, own), 0);
	ck_assert_int_ge(alloc(f, 1), 0);
	ck_assert_int_eq(dm_import(f, fd, 2, 1), -ENOENT);
	close(fd);
	fabric_close(f);
}
END_TEST

START_TEST(bad_arguments)
{
	struct urxe_fabric *f = new_fabric();

	ck_assert_int_eq(alloc(f, 0), -EINVAL);
	ck_assert_int_eq(dm_heap_alloc(f, 1, 1, 64, 64), -EINVAL);
	ck_assert_int_eq(dm_heap_alloc(f, 1, 1, 64, UINT32_MAX), -EINVAL);
	ck_assert_int_eq(dm_heap_alloc(f, 1, 1, 64, 63), -ENOMEM);
	ck_assert_int_eq(alloc(f, f->dev->dm_bytes + 1), -ENOMEM);
	ck_assert_int_eq(alloc(f, UINT64_MAX), -ENOMEM);
	fabric_close(f);
}
END_TEST

START_TEST(alignment)
{
	struct urxe_fabric *f;
	uint32_t log;
	int slot;

	setenv("URXE_DM_SIZE", "16M", 1);
	f = new_fabric();
	ck_assert_int_ge(alloc(f, 100), 0);
	for (log = 0; log <= 23; log++) {
		slot = dm_heap_alloc(f, 1, 1, 8, log);
		ck_assert_int_ge(slot, 0);
		ck_assert_uint_eq(f->dev->dm[slot].offset & ((1ull << log) - 1),
				  0);
		ck_assert_uint_eq((uintptr_t)dm_ptr(f, slot) %
					  (log < 21 ? 1ull << log : 2 * MiB),
				  0);
		ck_assert_int_eq(dm_free(f, slot), 0);
	}
	fabric_close(f);
}
END_TEST

START_TEST(zeroed_again)
{
	struct urxe_fabric *f = new_fabric();
	uint64_t offset;
	int a, b;

	a = alloc(f, 10000);
	b = alloc(f, 100);
	memset(dm_ptr(f, a), 0x5a, 12288);
	memset(dm_ptr(f, b), 0x77, 100);
	offset = f->dev->dm[a].offset;
	ck_assert_int_eq(dm_free(f, a), 0);
	a = alloc(f, 12288);
	ck_assert_uint_eq(f->dev->dm[a].offset, offset);
	ck_assert(all_zero(dm_ptr(f, a), 12288));
	ck_assert_int_eq(dm_ptr(f, b)[99], 0x77);
	fabric_close(f);
}
END_TEST

/* Memory that is registered as an MR cannot be freed (EBUSY). */
START_TEST(busy_with_an_mr)
{
	struct urxe_fabric *f = new_fabric();
	int slot = alloc(f, 64);

	ck_assert_int_eq(dm_heap_hold(f, slot, made(f, slot)), 0);
	ck_assert_int_eq(dm_free(f, slot), -EBUSY);
	ck_assert_str_ne(fabric_why(), "");
	ck_assert_uint_ne(atomic_load(&f->dev->dm[slot].used), 0);
	dm_heap_put(f, slot);
	ck_assert_int_eq(dm_free(f, slot), 0);
	fabric_close(f);
}
END_TEST

/* If a slot is reused, its old generation does not give access to it. */
START_TEST(stale_in_a_slot)
{
	struct urxe_fabric *f = new_fabric();
	int slot = alloc(f, 64);
	uint32_t old = made(f, slot);

	ck_assert_int_eq(dm_heap_free(f, slot, old), 0);
	ck_assert_int_eq(dm_heap_hold(f, slot, old), -ENOENT);
	ck_assert_int_eq(dm_heap_free(f, slot, old), -ENOENT);
	ck_assert_int_eq(alloc(f, 64), slot);
	ck_assert_uint_ne(made(f, slot), old);
	ck_assert_int_eq(dm_heap_hold(f, slot, old), -ENOENT);
	ck_assert_int_eq(dm_heap_free(f, slot, old), -ENOENT);
	ck_assert_uint_ne(atomic_load(&f->dev->dm[slot].used), 0);
	ck_assert_int_eq(dm_free(f, slot), 0);
	fabric_close(f);
}
END_TEST

/* Small allocations use up the memory, not the slots. */
START_TEST(small_pieces)
{
	static const struct {
		const char *size;
		uint64_t room;
		int pieces;
	} heap[] = {
		{ "16M", 16 * MiB, 16 * 256 },
		/* fewer slots than pages: allocations get two pages */
		{ "66M", 66 * MiB, 66 * 128 },
	};
	struct urxe_fabric *f;
	int i;

	if (!have_room(heap[_i].room * 3 / 2))
		return;
	setenv("URXE_DM_SIZE", heap[_i].size, 1);
	f = new_fabric();
	for (i = 0; i < heap[_i].pieces; i++)
		ck_assert_int_eq(alloc(f, 8), i);
	ck_assert_int_eq(alloc(f, 8), -ENOMEM);
	ck_assert_int_eq(dm_free(f, 500), 0);
	ck_assert_int_eq(alloc(f, 8), 500);
	fabric_close(f);
}
END_TEST

static int take_one(void *arg)
{
	struct urxe_fabric *f = again(arg);
	int slot = alloc(f, 3 * MiB);

	if (slot < 0)
		return 1;
	memset(dm_ptr(f, slot), 0x42, 3 * MiB);
	/* the parent checks the content through a mapping of its own */
	return alloc(f, 3 * MiB) == -ENOMEM ? slot + 10 : 2;
}

START_TEST(exhausted_by_two_processes)
{
	struct urxe_fabric *f;
	int ret, slot;

	setenv("URXE_DM_SIZE", "8M", 1);
	f = new_fabric();
	ck_assert_int_ge(alloc(f, 4 * MiB), 0);
	ret = reap_child(spawn(take_one, f));
	ck_assert_int_ge(ret, 10);
	slot = ret - 10;
	ck_assert_int_eq(dm_ptr(f, slot)[3 * MiB - 1], 0x42);
	ck_assert_int_eq(alloc(f, 2 * MiB), -ENOMEM);
	ck_assert_str_ne(fabric_why(), "");
	/* the remaining memory is available, and no more */
	ck_assert_int_ge(alloc(f, 1 * MiB), 0);
	ck_assert_int_eq(alloc(f, 1), -ENOMEM);
	ck_assert_int_eq(dm_free(f, slot), 0);
	ck_assert_int_ge(alloc(f, 3 * MiB), 0);
	fabric_close(f);
}
END_TEST

START_TEST(the_whole_heap)
{
	struct urxe_fabric *f;
	int slot, i;

	setenv("URXE_DM_SIZE", "4M", 1);
	f = new_fabric();
	for (i = 0; i < 3; i++) {
		slot = alloc(f, 4 * MiB);
		ck_assert_int_ge(slot, 0);
		ck_assert_int_eq(alloc(f, 1), -ENOMEM);
		ck_assert(all_zero(dm_ptr(f, slot), 4 * MiB));
		memset(dm_ptr(f, slot), 1, 4 * MiB);
		ck_assert_int_eq(dm_free(f, slot), 0);
	}
	fabric_close(f);
}
END_TEST

static int churn(void *arg)
{
	struct urxe_fabric *f = again(arg);
	uint32_t *p, mark = (uint32_t)getpid(), i, k, words;
	int slot[8], j;

	for (j = 0; j < 8; j++)
		slot[j] = -1;
	for (i = 0; i < 300; i++) {
		j = i % 8;
		if (slot[j] >= 0) {
			p = (uint32_t *)dm_ptr(f, slot[j]);
			words = f->dev->dm[slot[j]].length / 4;
			for (k = 0; k < words; k++)
				if (p[k] != mark)
					return 1;
			if (dm_free(f, slot[j]))
				return 2;
		}
		slot[j] =
			dm_heap_alloc(f, 1, 1, 4 * (1 + i * 37 % 9000), i % 14);
		if (slot[j] < 0)
			return 3;
		p = (uint32_t *)dm_ptr(f, slot[j]);
		words = f->dev->dm[slot[j]].length / 4;
		for (k = 0; k < words; k++) {
			if (p[k])
				return 4;
			p[k] = mark;
		}
	}
	return 0;
}

START_TEST(processes)
{
	struct urxe_fabric *f = new_fabric();
	pid_t pid[4];
	int i;

	for (i = 0; i < 4; i++)
		pid[i] = spawn(churn, f);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(reap_child(pid[i]), 0);
	fabric_close(f);
}
END_TEST

START_TEST(heap_too_short)
{
	struct urxe_fabric *f = new_fabric(), *g = again(f);
	char path[300];

	ck_assert_int_ge(alloc(f, 64), 0);
	if (!f->dev->dm_path[0]) { /* hugetlbfs has another file */
		snprintf(path, sizeof(path), "%s/dm", f->dir);
		ck_assert_int_eq(truncate(path, MiB), 0);
		ck_assert_int_eq(dm_heap_map(g), -EPROTO);
	}
	fabric_close(g);
	fabric_close(f);
}
END_TEST

/*
 * If the file system is full, allocations fail and no access raises SIGBUS.
 */
START_TEST(full_file_system)
{
	const char *dir;
	struct urxe_fabric *f;
	uint64_t total = 0;
	char path[200];
	int slot;

	setenv("URXE_DM_SIZE", "64M", 1);
	dir = tiny_tmpfs(6 * MiB);
	if (!dir)
		return;
	snprintf(path, sizeof(path), "%s/f", dir);
	ck_assert_int_eq(fabric_open(path, true, &f), 0);
	ck_assert_int_eq(alloc(f, 32 * MiB), -ENOMEM);
	if (f->dev->dm_path[0]) {
		fabric_close(f);
		return;
	}
	while ((slot = alloc(f, 256 << 10)) >= 0) {
		/* memory that was allocated is backed: no SIGBUS */
		memset(dm_ptr(f, slot), 1, 256 << 10);
		total += 256 << 10;
		ck_assert(total < 6 * MiB);
	}
	ck_assert_int_eq(slot, -ENOMEM);
	ck_assert(total >= MiB);
	ck_assert_int_eq(dm_free(f, 0), 0);
	fabric_close(f);
}
END_TEST

static int take_pages_and_die(void *arg)
{
	struct urxe_fabric *f = arg;

	fabric_lock(f);
	memset(f->dev->dm_map, 0xff, f->dm_bytes / 4096 / 8);
	raise(SIGKILL);
	return 0;
}

/*
 * Pages that a killed process took without completing the allocation become
 * available again.
 */
START_TEST(killed_during_alloc)
{
	struct urxe_fabric *f = new_fabric();
	int a = alloc(f, 4096), b;

	ck_assert_int_ge(a, 0);
	ck_assert_int_eq(reap_child(spawn(take_pages_and_die, f)), -SIGKILL);
	b = alloc(f, 4096);
	ck_assert_int_ge(b, 0);
	ck_assert_uint_ne(f->dev->dm[a].offset, f->dev->dm[b].offset);
	ck_assert_int_eq(dm_free(f, a), 0);
	ck_assert_int_eq(dm_free(f, b), 0);
	a = alloc(f, f->dm_bytes / 4);
	ck_assert_int_ge(a, 0);
	fabric_close(f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("dm_heap");

	add(s, alloc_and_free);
	add_loop(s, pages_of_two, 2);
	add(s, bad_arguments);
	add(s, alignment);
	add(s, zeroed_again);
	add(s, busy_with_an_mr);
	add(s, stale_in_a_slot);
	add_loop(s, small_pieces, 2);
	add(s, exhausted_by_two_processes);
	add(s, the_whole_heap);
	add(s, processes);
	add(s, heap_too_short);
	add(s, full_file_system);
	add(s, killed_during_alloc);
	return run_suite(s);
}
