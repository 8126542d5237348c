/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Callbacks by which the preload library reports munmap(2), mmap(MAP_FIXED),
 * mremap(2) and madvise(2) calls that take memory away to the referee (urxe
 * run --check).  The referee (provider/referee/unmapped.c) registers them
 * with urxe_watch_maps() of kernel-shim/preload/wrap/map.c.  The caller of
 * the wrapped function may hold locks of an allocator, so neither may
 * allocate.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct map_watch {
	/* Before the call: return a number that each new MR increments. */
	uint64_t (*now)(void);
	/*
	 * After a successful call: @len bytes at @at were unmapped or
	 * replaced.  @call is its name, @since what now() returned before it,
	 * @caller its return address.  errno is kept.
	 */
	void (*gone)(const char *call, const void *at, size_t len,
		     uint64_t since, const void *caller);
};
