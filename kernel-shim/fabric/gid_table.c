// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reading the GID table.  The writer (gid.c) clears `valid`, writes, and
 * stores a number there that it never used before: a reader that finds the
 * same one before and after has read one entry and not halves of two.
 */
#include <errno.h>
#include <string.h>

#include "fabric.h"

#define TRIES 1000 /* a writer that died in the middle: the slot is empty */

bool fabric_get_gid(const struct urxe_dev *dev, uint32_t index,
		    struct urxe_gid *out)
{
	const struct urxe_gid *g;
	uint32_t before, after;
	int i;

	if (index >= URXE_MAX_GID)
		return false;
	g = &dev->gid[URXE_GID_ROW(index)];
	for (i = 0; i < TRIES; i++) {
		before = load_acquire(&g->valid);
		if (!before)
			return false;
		memcpy(out->raw, g->raw, sizeof(out->raw));
		out->ifindex = g->ifindex;
		out->netns = g->netns;
		memcpy(out->ifname, g->ifname, sizeof(out->ifname));
		out->ifname[sizeof(out->ifname) - 1] = 0;
		/* the copies above come before the second look */
		atomic_thread_fence(memory_order_acquire);
		after = load_relaxed(&g->valid);
		if (before == after) {
			store_relaxed(&out->valid, 1);
			return true;
		}
	}
	return false;
}

static bool gid_is_v4(const uint8_t raw[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(raw, prefix, sizeof(prefix));
}

bool fabric_main_gid(const struct urxe_dev *dev, struct urxe_gid *out)
{
	uint32_t i;

	for (i = 0; i < URXE_MAX_GID; i += 2)
		if (fabric_get_gid(dev, i, out) && gid_is_v4(out->raw) &&
		    out->raw[12] != 127)
			return true;
	for (i = 0; i < URXE_MAX_GID; i += 2)
		if (fabric_get_gid(dev, i, out))
			return true;
	return false;
}
