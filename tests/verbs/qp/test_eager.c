// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Eager buffers: the data of messages of each size, on each type of QP, in
 * rings that are resized and from senders that are killed.
 */
#include <endian.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "eager.h"

/* a SEND uses the buffer if fewer messages than this are not polled */
#define SURE (SLOTS / 2)

/* ------------------------------------------------------------------- data */

/*
 * Each kind of QP, with one SGE and with three: messages up to the size of a
 * slot make no system call, and all data is right.
 */
START_TEST(sizes)
{
	static const uint32_t len[] = { 79,   80,   81,	  82,	127,  128,
					1000, 1024, 2047, 4055, 4056, 4057,
					4095, 4096, 4097, 8191, 8192, 8193 };
	struct opts o = large_opts();
	struct pair p;
	size_t i;
	long n;

	pair_open(&p, _i % KINDS, &o);
	warm_up(&p);
	p.parts = _i < KINDS ? 1 : 3;
	for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
		if (p.kind == UD && len[i] > UD_BYTES)
			break;
		n = exchange(&p, len[i]);
		if (len[i] + (p.kind == UD ? GRH : 0) <= SLOT_BYTES)
			ck_eager(n);
		else if (p.counts)
			ck_assert_int_gt(n, 0);
	}
	pair_close(&p);
}
END_TEST

/*
 * Messages that are not polled, in rings that are smaller and larger than the
 * buffer: those that have no slot go another way.
 */
START_TEST(unpolled)
{
	static const int depth[] = { 8, 64, 128, 1024 };
	struct opts o = large_opts();
	uint32_t n, turn;
	struct pair p;
	long calls;

	o.cqe = depth[_i % 4];
	n = o.cqe < 200 ? (uint32_t)o.cqe : 200;
	pair_open(&p, _i < 4 ? RC : SRQ, &o);
	warm_up(&p);
	for (turn = 0; turn < 4; turn++) {
		calls = batch_send(&p, 1000 + turn, n, 500);
		if (n <= SURE)
			ck_eager(calls);
		else if (is_eager())
			ck_assert_int_le(calls, n - SURE);
		if (n > SLOTS && p.counts)
			ck_assert_int_gt(calls, 0);
		batch_poll(&p, 1000 + turn, n, 500);
	}
	pair_close(&p);
}
END_TEST

/* Slots are reused while later messages are not polled. */
START_TEST(polled_in_parts)
{
	uint32_t in = 0, out = 0, i;
	struct opts o = large_opts();
	struct pair p;

	pair_open(&p, _i ? UC : RC, &o);
	warm_up(&p);
	for (i = 0; i < 40; i++) {
		batch_send(&p, in, 1 + i * 7 % 40, 4000);
		in += 1 + i * 7 % 40;
		while (in - out > i * 11 % 80) {
			batch_poll(&p, out, 1, 4000);
			out++;
		}
	}
	batch_poll(&p, out, in - out, 4000);
	pair_close(&p);
}
END_TEST

/* ----------------------------------------------------------------- resize */

static void do_resize(struct node *b, void *arg)
{
	ck_ok(ibv_resize_cq(b->rcq, *(int *)arg));
}

/*
 * Messages that were not polled before ibv_resize_cq, and those after it,
 * whose positions start anew.
 */
START_TEST(resize)
{
	static int cqe[] = { 200, 40, 1024, 64 };
	struct opts o = large_opts();
	uint32_t in = 0, out = 0, i;
	struct pair p;

	o.cqe = 64;
	pair_open(&p, _i ? SRQ : RC, &o);
	warm_up(&p);
	for (i = 0; i < 24; i++) {
		ck_eager(batch_send(&p, in, 7, 3000));
		in += 7;
		on_b(&p.d, do_resize, &cqe[i % 4], sizeof(int));
		ck_eager(batch_send(&p, in, 5, 3000));
		in += 5;
		if (i % 3 == 0) /* 2 entries are in both of the rings */
			continue;
		batch_poll(&p, out, in - out - 2 * (i % 3), 3000);
		out = in - 2 * (i % 3);
	}
	batch_poll(&p, out, in - out, 3000);
	pair_close(&p);
}
END_TEST

/* --------------------------------------------------------- killed sender */

static void do_leave_check(struct node *b, void *arg)
{
	(void)b;
	(void)arg;
	leave_check();
}

/*
 * Messages that a sender has sent before it was killed are received, in the
 * order and with the data that they were sent with.
 */
START_TEST(killed_sender)
{
	struct batch one = { .first = SINGLE, .n = 1, .len = 100, .parts = 1 };
	struct batch m = { .n = 20, .len = 3000, .parts = 1 };
	struct opts o = large_opts();
	struct duo d;
	int i;

	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, do_leave_check, NULL, 0);
	for (i = 0; i < 4; i++) {
		send_back(&d, &one);
		do_poll(&d.a, &one);
	}
	ck_eager(send_back(&d, &m));
	kill(d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	if (_i)
		ck_ok(ibv_resize_cq(d.a.rcq, 1000));
	do_poll(&d.a, &m);
	expect_none(d.a.rcq, QUIET_MS);
	close(d.sock);
	node_close(&d.a);
}
END_TEST

/* ---------------------------------------------------------------- traffic */

#define WINDOW 64 /* receives of each sender */
#define SENDERS 2

static uint32_t traffic(void)
{
	return (uint32_t)turns_of(10000);
}

static uint32_t traffic_len(uint32_t i)
{
	return 84 + i * 148 % 4012;
}

static struct {
	pthread_t thread;
	int failed;
} sender;

/*
 * Thread of b: send traffic() messages, whose immediate data and whose words
 * are their number.
 */
static void *send_all(void *arg)
{
	struct node *b = arg;
	struct ibv_send_wr wr = { .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM };
	struct ibv_sge sge;
	uint32_t i, k;

	for (i = 0; i < traffic() && !sender.failed; i++) {
		sge = node_sge(b, i % 32 * STRIDE, traffic_len(i));
		for (k = 0; k < sge.length; k += 4)
			*(uint32_t *)(uintptr_t)(sge.addr + k) = i;
		wr.wr_id = i;
		wr.imm_data = htobe32(i);
		wr.sg_list = &sge;
		wr.send_flags = i % 16 == 15 ? IBV_SEND_SIGNALED : 0;
		sender.failed |= post_wr(b->qp, &wr);
		if (i % 16 == 15)
			sender.failed |= wait_wc(b->scq).status;
	}
	return NULL;
}

static void do_start(struct node *b, void *arg)
{
	if (*(bool *)arg)
		leave_check();
	ck_ok(pthread_create(&sender.thread, NULL, send_all, b));
}

static void do_join(struct node *b, void *arg)
{
	(void)b;
	pthread_join(sender.thread, NULL);
	*(int *)arg = sender.failed;
}

/* One of the senders, with its QP of the receiver's CQ */
static struct traffic_end {
	struct duo d;
	struct node own; /* d.a before traffic_connect() */
	uint32_t next;
	bool killed;
} ends[SENDERS];

static void post_window(struct traffic_end *t, uint32_t k)
{
	const uint32_t slot = (uint32_t)(t - ends) * WINDOW + k;

	ck_ok(post_recv(&t->d.a, slot, (size_t)slot * STRIDE, STRIDE));
}

/* Connect a new QP of node @n to b of @t->d, and start the sender. */
static void traffic_connect(struct traffic_end *t, struct node *n, bool killed)
{
	uint32_t k;

	t->own = t->d.a;
	t->d.a = *n;
	node_make_qp(&t->d.a);
	t->d.at_a = node_addr(&t->d.a);
	duo_connect(&t->d);
	for (k = 0; k < WINDOW; k++)
		post_window(t, k);
	on_b(&t->d, do_start, &killed, sizeof(killed));
}

static void traffic_close(struct traffic_end *t)
{
	int failed;

	if (!t->killed) {
		on_b(&t->d, do_join, &failed, sizeof(failed));
		ck_assert_int_eq(failed, 0);
	}
	ck_ok(ibv_destroy_qp(t->d.a.qp));
	t->d.a = t->own;
	if (!t->killed) {
		duo_close(&t->d);
		return;
	}
	close(t->d.sock);
	node_close(&t->d.a);
}

static void traffic_receive(const struct node *n, const struct ibv_wc *wc)
{
	struct traffic_end *t = &ends[wc->wr_id / WINDOW];
	const char *data = (char *)n->buf + wc->wr_id * STRIDE;
	uint32_t k;

	ck_assert_int_eq(wc->status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc->qp_num, t->d.a.qp->qp_num);
	ck_assert_uint_eq(be32toh(wc->imm_data), t->next);
	ck_assert_uint_eq(wc->byte_len, traffic_len(t->next));
	for (k = 0; k < wc->byte_len; k += 4)
		ck_assert_uint_eq(*(const uint32_t *)(const void *)(data + k),
				  t->next);
	t->next++;
	post_window(t, wc->wr_id % WINDOW);
}

static void traffic_kill(struct traffic_end *t)
{
	if (t->killed || t->next < traffic() / 3)
		return;
	kill(t->d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(t->d.pid), -SIGKILL);
	t->killed = true;
}

static bool traffic_continues(bool kills)
{
	return ends[0].next < traffic() ||
	       (kills ? !ends[1].killed : ends[1].next < traffic());
}

/*
 * Two processes send to one CQ, which is resized (bit 0 of _i), while one of
 * them is killed (bit 1).  All data is right, and the order of each sender.
 */
START_TEST(in_traffic)
{
	static const int cqe[] = { 150, 4096, 300, 1000, 129 };
	double end = now_ms() + 6 * WAIT_MS;
	const bool resizes = _i & 1, kills = _i & 2;
	struct opts o = large_opts();
	uint32_t polls = 0;
	struct ibv_wc wc[8];
	struct node n0;
	int i, n;

	o.cqe = SENDERS * WINDOW;
	memset(ends, 0, sizeof(ends));
	for (i = 0; i < SENDERS; i++)
		duo_open_unconnected(&ends[i].d, TWO_PROCESSES, MEM_HEAP,
				     MEM_HEAP, &o);
	node_open(&n0, NULL, MEM_HEAP, &o);
	for (i = 0; i < SENDERS; i++)
		traffic_connect(&ends[i], &n0, kills && i == 1);
	while (traffic_continues(kills)) {
		ck_assert(now_ms() < end);
		n = ibv_poll_cq(n0.rcq, 1 + polls % 8, wc);
		ck_assert_int_ge(n, 0);
		for (i = 0; i < n; i++)
			traffic_receive(&n0, &wc[i]);
		if (kills)
			traffic_kill(&ends[1]);
		if (++polls % 64 || !resizes)
			continue;
		n = ibv_resize_cq(n0.rcq, cqe[polls / 64 % 5]);
		ck_assert(!n || n == EINVAL);
	}
	/* the last messages of a sender that was killed */
	while (kills && ibv_poll_cq(n0.rcq, 1, wc) == 1)
		if (wc->status == IBV_WC_SUCCESS)
			traffic_receive(&n0, wc);
	expect_no_async(n0.ctx);
	/* the second peer inherited the first one's socket */
	for (i = SENDERS - 1; i >= 0; i--)
		traffic_close(&ends[i]);
	node_close(&n0);
}
END_TEST

/* ------------------------------------------------------------ the receiver */

static void do_unmap(struct node *b, void *arg)
{
	leave_hole((char *)b->buf + *(size_t *)arg, 4096);
}

static void do_expect_error(struct node *b, void *arg)
{
	expect(b->rcq, *(uint32_t *)arg, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(qp_state(b->qp), IBV_QPS_ERR);
}

/*
 * The receiver has unmapped the first or the second page of the receive
 * before it polls: LOC_PROT_ERR, and the QP is in error.
 */
START_TEST(unmapped_receive)
{
	struct opts o = large_opts();
	uint32_t id = 32; /* in the middle of a page */
	size_t hole = AT(32) / 4096 * 4096 + _i % 2 * 4096;
	struct pair p;

	pair_open(&p, _i < 2 ? RC : SRQ, &o);
	warm_up(&p);
	p.parts = 1 + _i % 2;
	if (is_eager() && !under_adoption()) {
		ck_eager(batch_send(&p, id, 1, 4000));
		on_b(&p.d, do_unmap, &hole, sizeof(hole));
		on_b(&p.d, do_expect_error, &id, sizeof(id));
	}
	pair_close(&p);
}
END_TEST

static void do_arm(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_req_notify_cq(b->rcq, 0));
}

static void do_event(struct node *b, void *arg)
{
	struct ibv_cq *cq;
	void *context;

	(void)arg;
	ck_assert(fd_readable(b->chan->fd, WAIT_MS));
	ck_ok(ibv_get_cq_event(b->chan, &cq, &context));
	ck_assert_ptr_eq(cq, b->rcq);
	ibv_ack_cq_events(cq, 1);
}

/* A receiver that sleeps until its CQ's event. */
START_TEST(events)
{
	struct opts o = large_opts();
	uint32_t i;
	struct pair p;
	long calls;

	o.channel = true;
	pair_open(&p, RC, &o);
	for (i = 0; i < 8; i++) {
		on_b(&p.d, do_arm, NULL, 0);
		calls = batch_send(&p, i, 1, 2000);
		on_b(&p.d, do_event, NULL, 0);
		batch_poll(&p, i, 1, 2000);
	}
	ck_eager(calls);
	pair_close(&p);
}
END_TEST

int main(void)
{
	Suite *s = suite("eager");

	add_loop(s, sizes, 2 * KINDS);
	add_loop(s, unpolled, 8);
	add_loop(s, polled_in_parts, 2);
	add_loop(s, resize, 2);
	add_loop(s, killed_sender, 2);
	add_loop(s, in_traffic, 4);
	add_loop(s, unmapped_receive, 4);
	add_loop(s, events, 1);
	return run(s);
}
