/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The packet watcher: a callback for each packet that is sent to or received
 * from another host.  trace/packet.c installs it for `urxe run --trace`.
 * There is at most one in each shared object that is linked with this code.
 * Without it the data path has one test a batch or packet.
 *
 * The callback runs in the thread that sends or receives, which may hold
 * locks, and must not block.  Packets that the kernel refuses, or that fault
 * injection discards, are not reported.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/parse.h"

struct wire_watched {
	bool in; /* received */
	enum wire_refusal refusal; /* of a received packet */
	/* addresses and all known values of the IP and UDP headers */
	const struct wire_path *path;
	const uint8_t *bth;
	uint32_t bytes; /* BTH to ICRC, inclusive */
};

struct wire_watcher {
	uint64_t (*now)(void); /* the clock of `when` */
	void (*packet)(uint64_t when, const struct wire_watched *p);
};

/* Set before the first packet; NULL: no watcher. */
extern const struct wire_watcher *wire_watcher
	__attribute__((visibility("hidden")));

/*
 * Return the watcher's time, 0 without a watcher.  A sender calls it before
 * the system call, because responses may arrive before the call returns.
 */
static inline uint64_t wire_watch_time(void)
{
	return wire_watcher ? wire_watcher->now() : 0;
}
