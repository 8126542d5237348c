/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the preload library tells the provider's referee of calls that take
 * memory away.  Both functions may be called with an allocator's locks held.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct map_watch {
	/* Before the call: a number that grows with each MR. */
	uint64_t (*now)(void);
	/*
	 * After the call, if it succeeded: len bytes at this address are not
	 * there any more, or are others.  since: what now() returned.  errno is
	 * kept.
	 */
	void (*gone)(const char *call, const void *at, size_t len,
		     uint64_t since, const void *caller);
};
