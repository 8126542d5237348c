// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define LEN 512

PROGRAM(.name = "last-byte",
	.wrong =
		"the last byte of a WRITE has arrived, so all bytes are assumed to have arrived",
	.seen = "ofiwg/libfabric#655, linux-rdma/rdma-core#1009",
	.found = "place")
{
	struct pair p;

	PAIR(&p);
	memset(p.a.buf, 'A', LEN);
	post_receive(&p.b, 1, 0, 0);
	POST(&p.a,
	     .op = corrected ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
	     .len = LEN);
	if (corrected)
		wait_for(&p.b);
	while (!seen_byte(&p.b.buf[LEN - 1]))
		look_busy(&p.a);
	expect(all_are(p.b.buf, 'A', LEN), "earlier bytes have not arrived");
}
