// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define HEADER 40

PROGRAM(.name = "ud-header",
	.wrong =
		"the 40 bytes in front of a datagram (GRH) are taken for its payload",
	.seen = "linux-rdma/rdma-core#462, thustorage/Sherman#30",
	.found = "any run")
{
	struct ibv_wc wc;
	struct pair p;

	PAIR(&p, .type = IBV_QPT_UD);
	memset(p.a.buf, 'A', 64);
	post_receive(&p.b, 1, 0, 2048);
	POST(&p.a, .op = IBV_WR_SEND, .len = 64);
	if (!next_wc(&p.b, &wc))
		return; /* it was lost */
	expect(all_are(p.b.buf + (corrected ? HEADER : 0), 'A', 64),
	       "the buffer starts with the header");
}
