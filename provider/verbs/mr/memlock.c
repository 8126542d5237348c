// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Accounting of registered pages against RLIMIT_MEMLOCK. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "engine/core/log.h"
#include "memlock.h"
#include "verbs/profile.h"

static bool enforced;
static _Atomic uint64_t pinned; /* pages */

void memlock_init(void)
{
	const char *value = getenv("URXE_MEMLOCK");

	enforced = value && !strcmp(value, "enforce");
}

void memlock_after_fork(void)
{
	store_relaxed(&pinned, 0);
}

/*
 * Return whether this is the initial user namespace, in which the kernel's
 * capable() checks capabilities: the map has all IDs.
 */
static bool is_first_userns(void)
{
	static const char all[] = " 4294967295\n";
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	char map[64] = "";
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, map, sizeof(map) - 1);
		close(fd);
	}
	return n >= (ssize_t)sizeof(all) &&
	       !strcmp(map + n - (sizeof(all) - 1), all);
}

static bool can_lock(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct cap[2] = { 0 };

	return !syscall(SYS_capget, &head, cap) &&
	       cap[0].effective & 1u << CAP_IPC_LOCK && is_first_userns();
}

/*
 * Return whether @pages exceed RLIMIT_MEMLOCK and the process has no
 * CAP_IPC_LOCK.  *@limit, in bytes, is set if there is a limit.  Preserves
 * errno.
 */
static bool is_beyond(uint64_t pages, uint64_t *limit)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int saved = errno;
	struct rlimit r;
	bool beyond;

	if (getrlimit(RLIMIT_MEMLOCK, &r) || r.rlim_cur == RLIM_INFINITY)
		return false;
	*limit = r.rlim_cur;
	beyond = pages > r.rlim_cur / page && !can_lock();
	errno = saved;
	return beyond;
}

int memlock_charge(const struct urxe_context *ctx, uint64_t addr,
		   uint64_t length, uint64_t *pages)
{
	const bool by_profile = profile_limit(ctx, quirks) & PROFILE_MEMLOCK;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t limit, all;

	*pages = (addr % page + length + page - 1) / page;
	all = fetch_add_relaxed(&pinned, *pages) + *pages;
	if ((!enforced && !by_profile) || !is_beyond(all, &limit))
		return 0;
	memlock_release(*pages);
	*pages = 0;
	/* EPERM: as the kernel's can_do_mlock() */
	return fabric_fail(
		limit ? ENOMEM : EPERM,
		"RLIMIT_MEMLOCK is %llu bytes, and the memory regions of this process would pin %llu; raise it (ulimit -l, LimitMEMLOCK=), or register less",
		(unsigned long long)limit, (unsigned long long)(all * page));
}

void memlock_release(uint64_t pages)
{
	fetch_sub_relaxed(&pinned, pages);
}

bool memlock_exceeded(uint64_t *bytes, uint64_t *limit)
{
	const uint64_t pages = load_relaxed(&pinned);

	*bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return is_beyond(pages, limit);
}
