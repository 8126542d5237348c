// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

struct record {
	uint64_t front;
	char data[496];
	uint64_t back;
};

static void update(struct record *r, uint64_t version, int c)
{
	r->front = version - 1; /* odd: an update is in progress */
	r->back = version - 1;
	memset(r->data, c, sizeof(r->data));
	r->back = version;
	r->front = version;
}

/* Several READs: they are in order, the bytes of one READ are not. */
static void read_part(struct pair *p, size_t at, uint32_t len)
{
	POST(&p->a, .op = IBV_WR_RDMA_READ, .from = at, .at = at, .len = len,
	     .flags = IBV_SEND_SIGNALED);
	wait_for(&p->a);
}

static bool read_twice(struct pair *p)
{
	const struct record *got = (const void *)p->a.buf;
	uint64_t before;

	read_part(p, offsetof(struct record, front), 8);
	before = got->front;
	read_part(p, offsetof(struct record, data), sizeof(got->data));
	read_part(p, offsetof(struct record, front), 8);
	return before == got->front && !(before & 1);
}

PROGRAM(.name = "snapshot",
	.wrong =
		"a READ is assumed to be a snapshot if both ends of the data have the same version",
	.seen = "ofiwg/libfabric#653", .found = "place, reread")
{
	const struct record *got;
	struct pair p;
	int i;

	PAIR(&p);
	got = (const void *)p.a.buf;
	update((void *)p.b.buf, 2, 'A');
	POST(&p.a, .op = IBV_WR_RDMA_READ, .len = sizeof(*got),
	     .flags = IBV_SEND_SIGNALED);
	for (i = 0; i < 4; i++)
		look_busy(&p.a);
	update((void *)p.b.buf, 4, 'B');
	wait_for(&p.a);
	while (corrected && !read_twice(&p))
		;
	if (corrected || got->front == got->back)
		expect(all_are(got->data, got->front == 2 ? 'A' : 'B',
			       sizeof(got->data)),
		       "the data does not match the version");
}
