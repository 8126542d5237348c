// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

struct record {
	uint64_t front;
	char data[496];
	uint64_t back;
};

PROGRAM(.name = "versions-at-both-ends",
	.wrong =
		"the new version has arrived at both ends of a WRITE, so all of it is assumed to have arrived",
	.seen = "ofiwg/libfabric#655", .found = "place")
{
	struct record *own, *r;
	struct pair p;

	PAIR(&p);
	own = (struct record *)(void *)p.a.buf;
	own->front = own->back = 2;
	memset(own->data, 'A', sizeof(own->data));
	if (corrected) {
		POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = sizeof(*own) - 8);
		POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
		     .from = sizeof(*own) - 8, .at = sizeof(*own) - 8);
	} else {
		POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = sizeof(*own));
	}
	r = (struct record *)(void *)p.b.buf;
	while (seen_word(&r->front) != 2 || seen_word(&r->back) != 2)
		look_busy(&p.a);
	expect(all_are(p.b.buf + 8, 'A', sizeof(own->data)),
	       "the middle has not arrived");
}
