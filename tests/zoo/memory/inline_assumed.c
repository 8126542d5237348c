// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "inline-assumed",
	.wrong =
		"a short message is assumed to be sent inline, without IBV_SEND_INLINE",
	.seen = "openucx/ucx#11544", .found = "gather")
{
	struct pair p;
	uint64_t i;

	PAIR(&p); /* max_inline_data is 64 */
	for (i = 0; i < 4; i++) {
		post_receive(&p.b, i, 64 * i, 64);
		memset(p.a.buf, 'A' + (int)i, 16);
		POST(&p.a, .op = IBV_WR_SEND, .len = 16,
		     .flags = corrected ? IBV_SEND_INLINE : 0);
	}
	for (i = 0; i < 4; i++)
		wait_for(&p.b);
	for (i = 0; i < 4; i++)
		expect(all_are(p.b.buf + 64 * i, (char)('A' + i), 16),
		       "a message has the data of a later one");
}
