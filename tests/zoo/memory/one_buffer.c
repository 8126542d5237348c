// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "one-buffer",
	.wrong = "two receives are posted with the same buffer", .seen = "-",
	.found = "any run")
{
	const size_t second = corrected ? 64 : 0;
	struct pair p;

	PAIR(&p);
	post_receive(&p.b, 1, 0, 64);
	post_receive(&p.b, 2, second, 64);
	memset(p.a.buf, 'A', 64);
	memset(p.a.buf + 64, 'B', 64);
	POST(&p.a, .op = IBV_WR_SEND, .len = 64);
	POST(&p.a, .op = IBV_WR_SEND, .from = 64, .len = 64);
	wait_for(&p.b);
	expect(all_are(p.b.buf, 'A', 64), "the buffer has the second message");
	wait_for(&p.b);
	expect(all_are(p.b.buf + second, 'B', 64),
	       "the buffer has the first message");
}
