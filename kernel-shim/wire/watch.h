/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who sees each packet that goes out or comes in: one of the process, or
 * nobody, which costs a test.  He is called in the thread that sends or
 * receives, and must not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/parse.h"

struct wire_watched {
	bool in;
	enum wire_refusal refusal; /* of what came in */
	/* from whom to whom, with all that is known of IP and UDP */
	const struct wire_path *path;
	const uint8_t *bth;
	uint32_t bytes; /* to the ICRC, with it */
};

struct wire_watcher {
	uint64_t (*now)(void);
	void (*packet)(uint64_t when, const struct wire_watched *p);
};

/* Set before anything is sent. */
extern const struct wire_watcher *wire_watcher
	__attribute__((visibility("hidden")));

/* Before packets are given to the kernel, as what they bring may be here before
 * it returns. */
static inline uint64_t wire_watch_time(void)
{
	return wire_watcher ? wire_watcher->now() : 0;
}
