// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lock all memory, present and future (mlockall), and open the device twice.
 * Print "open" and wait for EOF on stdin.  Exit with SKIP if RLIMIT_MEMLOCK
 * does not permit it.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test.h"

static bool is_limited(void)
{
	struct rlimit r;

	return !getrlimit(RLIMIT_MEMLOCK, &r) && r.rlim_cur != RLIM_INFINITY;
}

int main(void)
{
	struct ibv_alloc_dm_attr dm = { .length = 4096 };
	struct ibv_device **list;
	struct ibv_context *ctx;
	char c;
	int i;

	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return SKIP;
	list = ibv_get_device_list(NULL);
	CHECK(list);
	if (!list[0] && is_limited())
		return SKIP;
	CHECK(list[0]);
	for (i = 0; i < 2; i++) {
		ctx = ibv_open_device(list[0]);
		/* RLIMIT_MEMLOCK, as unprivileged users have */
		if (!ctx && errno == EAGAIN)
			return SKIP;
		CHECK(ctx);
		CHECK(ibv_create_cq(ctx, 16, NULL, NULL, 0));
		CHECK(ibv_alloc_dm(ctx, &dm));
	}
	puts("open");
	fflush(stdout);
	return read(0, &c, 1) < 0;
}
