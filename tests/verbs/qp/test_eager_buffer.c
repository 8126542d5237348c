// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Eager buffers: when they are allocated and freed, without memory, and in
 * processes of a fork.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eager.h"

#define MANY 12

static struct many {
	struct addr addr[MANY];
} many; /* of b's QPs */
static struct ibv_qp *qps[MANY]; /* of this process's end */
static struct ibv_cq *cqs[MANY];

/* QP 0 is that of the node.  The others have a receive CQ each. */
static void do_open_many(struct node *b, void *arg)
{
	struct many *m = arg;
	struct node n = *b;
	int i;

	for (i = 0; i < MANY; i++) {
		if (i) {
			n.rcq = ibv_create_cq(b->ctx, 256, NULL, NULL, 0);
			ck_nonnull(n.rcq);
			n.qp = make_qp(&n, IBV_QPT_RC, NULL);
		}
		qps[i] = n.qp;
		cqs[i] = n.rcq;
		m->addr[i] = node_addr(&n);
	}
}

static void do_connect_many(struct node *b, void *arg)
{
	const struct many *m = arg;
	int i;

	for (i = 1; i < MANY; i++)
		type_connect(qps[i], &b->o, &m->addr[i]);
}

/* Add QPs to an open pair. */
static void many_add(struct pair *p)
{
	struct many here;
	struct node n;
	int i;

	on_b(&p->d, do_open_many, &many, sizeof(many));
	n = p->d.a;
	for (i = 0; i < MANY; i++) {
		if (i)
			n.qp = make_qp(&n, IBV_QPT_RC, NULL);
		qps[i] = n.qp;
		here.addr[i] = node_addr(&n);
	}
	on_b(&p->d, do_connect_many, &here, sizeof(here));
	do_connect_many(&p->d.a, &many);
}

static void open_many(struct pair *p, const struct opts *o)
{
	pair_open(p, RC, o);
	many_add(p);
}

static void do_use(struct node *b, void *arg)
{
	const int i = *(int *)arg;

	b->qp = qps[i];
	b->rcq = cqs[i];
}

/* The next messages are for QP @i. */
static void use(struct pair *p, int i)
{
	p->d.a.qp = qps[i];
	on_b(&p->d, do_use, &i, sizeof(i));
}

static void do_close_many(struct node *b, void *arg)
{
	int i;

	(void)arg;
	for (i = 1; i < MANY; i++) {
		ck_ok(ibv_destroy_qp(qps[i]));
		if (cqs[i] && cqs[i] != b->rcq)
			ck_ok(ibv_destroy_cq(cqs[i]));
	}
}

static void close_many(struct pair *p)
{
	use(p, 0);
	on_b(&p->d, do_close_many, NULL, 0);
	do_close_many(&p->d.a, NULL);
}

static void do_shared_bytes(struct node *b, void *arg)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", b->ctx->cmd_fd);
	ck_ok(stat(path, &st));
	*(long *)arg = (long)st.st_blocks * 512;
}

/* The bytes that are allocated for the file of b's context. */
static long shared_bytes(struct pair *p)
{
	long bytes;

	on_b(&p->d, do_shared_bytes, &bytes, sizeof(bytes));
	return bytes;
}

/* Wait until no more bytes than these are allocated. */
static void await_bytes(struct pair *p, long bytes)
{
	double end = now_ms() + WAIT_MS;

	while (shared_bytes(p) > bytes) {
		ck_assert(now_ms() < end);
		sleep_ms(20);
	}
}

/*
 * A buffer that is not used is freed, and allocated again for the next
 * message.  One that has messages that are not polled is not freed.
 */
START_TEST(returned_when_idle)
{
	struct opts o = large_opts();
	struct pair p;
	long before, both;

	open_many(&p, &o);
	before = shared_bytes(&p);
	use(&p, 2);
	warm_up(&p);
	/* not the buffers of the other QP: without eager messages they fill now
	 */
	ck_eager(batch_send(&p, 20, 5, 3000));
	use(&p, 1);
	warm_up(&p);
	if (is_eager() && p.counts) {
		both = shared_bytes(&p);
		ck_assert_int_ge(both, before + 2 * BUFFER);
		await_bytes(&p, both - BUFFER);
		ck_assert_int_ge(shared_bytes(&p), before + BUFFER);
	}
	warm_up(&p);
	ck_eager(batch_send(&p, 0, 5, 3000));
	use(&p, 2);
	batch_poll(&p, 20, 5, 3000);
	use(&p, 1);
	batch_poll(&p, 0, 5, 3000);
	close_many(&p);
	pair_close(&p);
}
END_TEST

/* A context has at most BUFFERS buffers; its other CQs do without. */
START_TEST(more_cqs_than_buffers)
{
	struct opts o = large_opts();
	int i, eager = 0;
	struct pair p;
	long before;

	open_many(&p, &o);
	use(&p, 0);
	p.counts = is_eager() && exchange(&p, 3 * SLOT_BYTES);
	before = shared_bytes(&p);
	for (i = 0; i < MANY; i++) {
		use(&p, i);
		exchange(&p, 1000);
		exchange(&p, 1001);
		eager += !batch_send(&p, 100 + 10 * i, 10, 2000);
	}
	if (p.counts) {
		ck_assert_int_eq(eager, BUFFERS);
		ck_assert_int_eq(shared_bytes(&p), before + BUFFERS * BUFFER);
		/* the pages of the buffers are accounted for */
		ck_ok(system("\"$URXE\" doctor --fabric \"$URXE_FABRIC\" >&2"));
	}
	for (i = 0; i < MANY; i++) {
		use(&p, i);
		batch_poll(&p, 100 + 10 * i, 10, 2000);
	}
	close_many(&p);
	if (p.counts)
		ck_assert_int_lt(shared_bytes(&p), before + 2 * BUFFER);
	pair_close(&p);
}
END_TEST

static void do_fill_up(struct node *b, void *arg)
{
	(void)b;
	atomic_store(&full, *(bool *)arg);
}

/*
 * No memory for the buffer: messages go another way.  When there is memory
 * again, the buffer is allocated.
 */
START_TEST(no_memory)
{
	double end = now_ms() + WAIT_MS;
	struct opts o = large_opts();
	bool yes = true, no = false;
	struct pair p;
	long calls = 0;
	int i;

	pair_open(&p, _i ? SRQ : RC, &o);
	p.counts = is_eager() && exchange(&p, 3 * SLOT_BYTES);
	on_b(&p.d, do_fill_up, &yes, sizeof(yes));
	for (i = 0; i < 5; i++)
		calls = exchange(&p, 1000 + i);
	if (p.counts)
		ck_assert_int_gt(calls, 0);
	on_b(&p.d, do_fill_up, &no, sizeof(no));
	while (exchange(&p, 1000) && is_eager()) {
		ck_assert(now_ms() < end);
		sleep_ms(20);
	}
	pair_close(&p);
}
END_TEST

/* ------------------------------------------------------------------- fork */

#define LOOP_BYTES 200

/* Child: send on the parent's QP from its own stack. */
static int send_inline(void *arg)
{
	struct node *n = arg;
	uint8_t data[LOOP_BYTES];
	struct ibv_sge sge = { (uintptr_t)data, sizeof(data), 0 };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED |
						IBV_SEND_INLINE };

	node_get(n, 0, data, sizeof(data));
	return post_wr(n->qp, &wr);
}

/*
 * A child sends to a QP of its parent, with one CQ for both completions.  They
 * are in the order of the specification (responder_order_after()), and the
 * data is that of the message.
 */
START_TEST(child_and_one_cq)
{
	struct opts o = default_opts();
	struct ibv_cq *scq;
	struct ibv_qp *from, *to;
	struct addr at_from, at_to;
	struct node n;
	uint32_t i;

	o.cap.max_inline_data = 256;
	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(n.qp));
	scq = n.scq;
	n.scq = n.rcq;
	for (i = 0; i < 6; i++) {
		to = make_qp(&n, IBV_QPT_RC, NULL);
		from = make_qp(&n, IBV_QPT_RC, NULL);
		n.qp = to;
		at_to = node_addr(&n);
		n.qp = from;
		at_from = node_addr(&n);
		type_connect(to, &o, &at_from);
		type_connect(from, &o, &at_to);
		ck_ok(qp_recv(to, &n, 2, 1024, LOOP_BYTES));
		node_fill(&n, 0, LOOP_BYTES, i);
		ck_assert_int_eq(reap_child(spawn(send_inline, &n)), 0);
		expect_ok(n.rcq, 1, IBV_WC_SEND);
		expect_ok(n.rcq, 2, IBV_WC_RECV);
		ck_assert(node_has(&n, 1024, LOOP_BYTES, i));
		ck_ok(ibv_destroy_qp(from));
		ck_ok(ibv_destroy_qp(to));
	}
	n.qp = NULL;
	n.scq = scq;
	node_close(&n);
}
END_TEST

/* A child that polls the CQ of b. */
static struct heir {
	pid_t pid;
	struct ibv_cq *cq;
	int go[2], done[2]; /* pipes */
} heir;

#define EACH 8u /* messages for each request */

static int poll_for_parent(void *arg)
{
	uint32_t i, n = 0;
	char byte;

	(void)arg;
	close(heir.go[1]);
	while (read(heir.go[0], &byte, 1) == 1) {
		for (i = 0; i < EACH; i++)
			expect_ok(heir.cq, n++, IBV_WC_RECV);
		if (write(heir.done[1], "", 1) != 1)
			return 1;
	}
	return 0;
}

static void do_fork_heir(struct node *b, void *arg)
{
	(void)arg;
	heir.cq = b->rcq;
	ck_ok(pipe(heir.go) || pipe(heir.done));
	heir.pid = spawn(poll_for_parent, NULL);
	close(heir.go[0]);
	close(heir.done[1]);
}

/* Let the child poll, and check the data in b, which is not the child. */
static void do_heir_polls(struct node *b, void *arg)
{
	const struct batch *m = arg;
	uint32_t i;
	char byte;

	ck_assert_int_eq(write(heir.go[1], "", 1), 1);
	ck_assert_int_eq(read(heir.done[0], &byte, 1), 1);
	for (i = m->first; i < m->first + m->n; i++)
		ck_assert(node_has(b, AT(i), LEN(m, i), i));
}

static void do_end_heir(struct node *b, void *arg)
{
	(void)b;
	(void)arg;
	close(heir.go[1]);
	close(heir.done[0]);
	ck_assert_int_eq(reap_child(heir.pid), 0);
}

/*
 * A child of the receiver polls its CQ.  The receiver, which knows only what
 * it polled itself, does not free the buffer of that CQ, but it frees the
 * buffer of a CQ that was created after the fork, and is idle later.
 */
START_TEST(child_polls)
{
	struct batch m = { .n = EACH, .len = 1000, .parts = 1 };
	struct opts o = large_opts();
	struct pair p;
	long before;

	o.cqe = 2 * EACH;
	pair_open(&p, RC, &o);
	warm_up(&p);
	on_b(&p.d, do_fork_heir, NULL, 0);
	for (; m.first < 3 * EACH; m.first += EACH) {
		ck_eager(batch_send(&p, m.first, EACH, m.len));
		on_b(&p.d, do_heir_polls, &m, sizeof(m));
	}
	ck_eager(batch_send(&p, m.first, EACH, m.len));
	many_add(&p);
	use(&p, 1);
	warm_up(&p);
	if (is_eager() && p.counts) {
		before = shared_bytes(&p);
		await_bytes(&p, before - BUFFER);
		ck_assert_int_eq(shared_bytes(&p), before - BUFFER);
	}
	use(&p, 0);
	on_b(&p.d, do_heir_polls, &m, sizeof(m));
	on_b(&p.d, do_end_heir, NULL, 0);
	close_many(&p);
	pair_close(&p);
}
END_TEST

int main(void)
{
	Suite *s = suite("eager_buffer");

	add(s, returned_when_idle);
	add(s, more_cqs_than_buffers);
	add_loop(s, no_memory, 2);
	add(s, child_and_one_cq);
	add(s, child_polls);
	return run(s);
}
