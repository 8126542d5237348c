// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * spoil WHAT: make one item of the fabric inconsistent, so that "urxe doctor
 * --fabric" must report it (inspect.sh).  Some items need a context, which
 * stays until the process is killed; see kinds[].
 */
#include <fcntl.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "shared/bitmap.h"
#include "test.h"

static struct urxe_fabric *f;
static struct urxe_arena *a;

static void touch(const char *name)
{
	int fd = openat(f->dirfd, name, O_WRONLY | O_CREAT, 0600);

	CHECK(fd >= 0);
	close(fd);
}

static void lock_device(void)
{
	CHECK(!fabric_lock(f));
}

static void lock_context(void)
{
	CHECK(!arena_lock(f, a));
}

static void spoil_count(void)
{
	fetch_add_relaxed(&f->dev->used[URXE_OBJ_QP], 1);
}

static void spoil_directory(void)
{
	store_relaxed(&f->dev->qp[5], URXE_DIR(URXE_QPN(5, 0), 77, 1));
	store_relaxed(&f->dev->qp_high, 6);
}

static void spoil_dm(void)
{
	bitmap_set(f->dev->dm_map, 3, 1);
}

static void spoil_group(void)
{
	store_relaxed(&f->dev->mcast[2].count, 1);
}

static void spoil_domain(void)
{
	store_relaxed(&f->dev->xrcd[9].used, 1);
}

static void spoil_arena_file(void)
{
	touch("ctx/77.1");
}

static void spoil_fifo(void)
{
	touch("ev/77.1.0");
}

static void spoil_half(void)
{
	touch("device.123.456");
}

static void spoil_own_count(void)
{
	CHECK(!fabric_obj_get(f, a->slot, URXE_OBJ_PD));
}

static void spoil_cq(void)
{
	bitmap_set(a->cq_map, 7, 1);
}

static void spoil_heap(void)
{
	bitmap_set(a->heap_map, 7, 1);
}

static void spoil_key(void)
{
	store_relaxed(&a->key_high, 64);
	store_relaxed(&a->key[7].live, 1);
}

static void spoil_pd(void)
{
	store_relaxed(&a->pd[3].live, 1);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *what;
		void (*spoil)(void);
		bool context;
	} kinds[] = {
		{ "count", spoil_count, false },
		{ "directory", spoil_directory, false },
		{ "dm", spoil_dm, false },
		{ "group", spoil_group, false },
		{ "domain", spoil_domain, false },
		{ "arena-file", spoil_arena_file, false },
		{ "fifo", spoil_fifo, false },
		{ "half", spoil_half, false },
		{ "half-counted", spoil_count, true },
		{ "own-count", spoil_own_count, true },
		{ "cq", spoil_cq, true },
		{ "heap", spoil_heap, true },
		{ "key", spoil_key, true },
		{ "pd", spoil_pd, true },
		{ "device-lock", lock_device, true },
		{ "context-lock", lock_context, true },
		{ "nothing", NULL, true },
	};
	char dir[256];
	size_t i;
	int fd;

	CHECK(argc == 2 && !fabric_dir(dir, sizeof(dir)) &&
	      !fabric_open(dir, true, &f));
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].what, argv[1]))
			break;
	CHECK(i < sizeof(kinds) / sizeof(*kinds));
	if (kinds[i].context) {
		fd = fabric_context_open(f, 0);
		CHECK(fd >= 0 && !arena_map(fd, &a));
	}
	if (kinds[i].spoil)
		kinds[i].spoil();
	puts("done");
	fflush(stdout);
	if (kinds[i].context)
		pause();
	return 0;
}
