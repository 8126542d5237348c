// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "atomic-early",
	.wrong = "the result of an atomic is used before its completion",
	.seen = "-", .found = "overtake")
{
	struct pair p;

	PAIR(&p);
	*(uint64_t *)(void *)p.b.buf = 41;
	POST(&p.a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .add = 1,
	     .flags = IBV_SEND_SIGNALED);
	if (corrected)
		wait_for(&p.a);
	expect(seen_word(p.a.buf) == 41, "the result has not arrived");
}
