// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The reader of the GID table: a seqlock per row, with `valid` as its
 * sequence number.  (Boehm, "Can seqlocks get along with programming language
 * memory models?", MSPC 2012.)
 *
 * The writer (gid.c, under the device lock) stores 0 in `valid`, writes the
 * row, and stores a number that was not used before.  0 is an empty row.  A
 * reader loads `valid` before (acquire) and after (behind an acquire fence)
 * it copies the row.  If the numbers are equal the copy is consistent.  Any
 * thread may read.
 */
#include <errno.h>
#include <string.h>

#include "fabric.h"

/*
 * Limit of attempts while writers change the row.  A writer that dies in
 * between leaves 0, an empty row.
 */
#define TRIES 1000

bool gid_row_get(const struct urxe_gid *g, struct urxe_gid *out)
{
	uint32_t before, after;
	int i;

	for (i = 0; i < TRIES; i++) {
		before = load_acquire(&g->valid);
		if (!before)
			return false;
		memcpy(out->raw, g->raw, sizeof(out->raw));
		out->ifindex = g->ifindex;
		out->netns = g->netns;
		memcpy(out->ifname, g->ifname, sizeof(out->ifname));
		out->ifname[sizeof(out->ifname) - 1] = 0;
		/* the copy precedes the second load */
		atomic_thread_fence(memory_order_acquire);
		after = load_relaxed(&g->valid);
		if (before == after) {
			store_relaxed(&out->valid, 1);
			return true;
		}
	}
	return false;
}

bool fabric_get_gid(const struct urxe_hca *hca, uint32_t index,
		    struct urxe_gid *out)
{
	return gid_has_row(hca, index) &&
	       gid_row_get(&hca->gid[gid_row(hca, index)], out);
}

static bool gid_is_v4(const uint8_t raw[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(raw, prefix, sizeof(prefix));
}

bool fabric_main_gid(const struct urxe_hca *hca, struct urxe_gid *out)
{
	uint32_t i;

	for (i = 0; i < URXE_GID_ROWS; i++)
		if (gid_row_get(&hca->gid[i], out) && gid_is_v4(out->raw) &&
		    out->raw[12] != 127)
			return true;
	for (i = 0; i < URXE_GID_ROWS; i++)
		if (gid_row_get(&hca->gid[i], out))
			return true;
	return false;
}

int fabric_gid_owner(const struct urxe_dev *dev, const uint8_t gid[16])
{
	uint32_t k, i;

	for (k = 0; k < dev_hcas(dev); k++)
		for (i = 0; i < URXE_GID_ROWS; i++) {
			if (load_acquire(&dev->hca[k].gid[i].valid)) {
				if (!memcmp(dev->hca[k].gid[i].raw, gid, 16))
					return (int)k;
			} else if (k || dev->cluster) {
				break; /* this table has no gaps */
			}
		}
	return -1;
}
