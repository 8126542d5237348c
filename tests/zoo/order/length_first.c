// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define TEXT 256

struct message {
	uint64_t len;
	char text[TEXT];
};

PROGRAM(.name = "length-first",
	.wrong =
		"the length at the start of a message has arrived, so all of it is assumed to have arrived",
	.seen = "ofiwg/libfabric#655", .found = "place")
{
	struct message *m;
	struct pair p;

	PAIR(&p);
	m = (struct message *)(void *)p.a.buf;
	m->len = TEXT;
	memset(m->text, 'A', TEXT);
	if (corrected) { /* WRITEs of one QP are in order */
		POST(&p.a, .op = IBV_WR_RDMA_WRITE, .from = 8, .at = 8,
		     .len = TEXT);
		POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = 8);
	} else {
		POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = sizeof(*m));
	}
	m = (struct message *)(void *)p.b.buf;
	while (!seen_word(&m->len))
		look_busy(&p.a);
	expect(all_are(m->text, 'A', TEXT), "part of the text has not arrived");
}
