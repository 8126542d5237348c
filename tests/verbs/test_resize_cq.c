// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ibv_resize_cq, at rest and in traffic: nothing gets lost or comes twice. */
#include <endian.h>
#include <pthread.h>
#include <string.h>

#include "harness.h"

static void write_n(struct duo *d, int first, int n)
{
	int i;

	for (i = 0; i < n; i++)
		ck_ok(post(d, IBV_WR_RDMA_WRITE, first + i, 0, 8, 0, 0));
}

static void poll_n(struct duo *d, int first, int n)
{
	int i;

	for (i = 0; i < n; i++)
		expect_ok(d->a.scq, first + i, IBV_WC_RDMA_WRITE);
}

START_TEST(errors)
{
	struct opts o = default_opts();
	struct ibv_device_attr dev;
	struct duo d;
	int cqe;

	o.cqe = 16;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_query_device(d.a.ctx, &dev));
	cqe = d.a.scq->cqe;
	ck_assert_int_eq(ibv_resize_cq(d.a.scq, 0), EINVAL);
	ck_assert_int_eq(ibv_resize_cq(d.a.scq, -1), EINVAL);
	ck_assert_int_eq(ibv_resize_cq(d.a.scq, dev.max_cqe + 1), EINVAL);
	ck_assert_int_eq(d.a.scq->cqe, cqe);
	/* more completions than entries, if they are all there */
	write_n(&d, 0, 9);
	if (!under_adversary()) {
		ck_assert_int_eq(ibv_resize_cq(d.a.scq, 8), EINVAL);
		ck_assert_int_eq(d.a.scq->cqe, cqe);
		ck_assert_int_eq(ibv_resize_cq(d.a.scq, 8), EINVAL);
	}
	write_n(&d, 9, 3);
	poll_n(&d, 0, 4);
	ck_ok(ibv_resize_cq(d.a.scq, 8));
	ck_assert_int_ge(d.a.scq->cqe, 8);
	poll_n(&d, 4, 8);
	expect_none(d.a.scq, QUIET_MS);
	duo_close(&d);
}
END_TEST

START_TEST(sizes)
{
	const int size[] = { 1, 2, 7, 8, 9, 64, 1000, 3, 65535, 1, 1, 300 };
	struct opts o = default_opts();
	struct ibv_device_attr dev;
	struct duo d;
	size_t i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_query_device(d.a.ctx, &dev));
	for (i = 0; i < sizeof(size) / sizeof(*size); i++) {
		ck_ok(ibv_resize_cq(d.a.scq, size[i]));
		ck_assert_int_ge(d.a.scq->cqe, size[i]);
		ck_assert_int_le(d.a.scq->cqe, dev.max_cqe);
		write_n(&d, 0, size[i] < 40 ? size[i] : 40);
		poll_n(&d, 0, size[i] < 40 ? size[i] : 40);
		expect_none(d.a.scq, 1);
	}
	duo_close(&d);
}
END_TEST

/* Up and down with completions inside, which stay in order. */
START_TEST(with_completions)
{
	struct opts o = default_opts();
	int in = 0, out = 0, i;
	struct duo d;

	o.cqe = 32;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 60; i++) {
		write_n(&d, in, 1 + i % 7);
		in += 1 + i % 7;
		ck_ok(ibv_resize_cq(d.a.scq, 32 << i % 3));
		if (i % 2)
			continue;
		/* some of the old ring's, some of the new one's */
		write_n(&d, in, 2);
		in += 2;
		poll_n(&d, out, in - out - 1 - i % 3);
		out = in - 1 - i % 3;
	}
	poll_n(&d, out, in - out);
	expect_none(d.a.scq, QUIET_MS);
	duo_close(&d);
}
END_TEST

/* The last slot is taken: there is none to end the ring with. */
START_TEST(full)
{
	struct opts o = default_opts();
	struct duo d;
	int cqe;

	o.cqe = 8;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	cqe = d.a.scq->cqe;
	write_n(&d, 0, cqe);
	ck_ok(ibv_resize_cq(d.a.scq, 2 * cqe));
	write_n(&d, cqe, cqe);
	ck_ok(ibv_resize_cq(d.a.scq, 2 * cqe));
	poll_n(&d, 0, 2 * cqe);
	expect_none(d.a.scq, QUIET_MS);
	expect_no_async(d.a.ctx);
	duo_close(&d);
}
END_TEST

/* A smaller CQ overruns sooner. */
START_TEST(overrun)
{
	struct opts o = default_opts();
	struct ibv_async_event ev;
	struct duo d;
	int i;

	o.cqe = 64;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_resize_cq(d.a.scq, 4));
	for (i = 0; i < 60; i++)
		if (post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0))
			break;
	ck_assert_int_lt(d.a.scq->cqe, 60);
	ev = wait_async(d.a.ctx, true);
	ck_assert_int_eq(ev.event_type, IBV_EVENT_CQ_ERR);
	ck_assert_ptr_eq(ev.element.cq, d.a.scq);
	duo_close(&d);
}
END_TEST

static void do_send(struct node *b, void *arg)
{
	struct ibv_sge sge = node_sge(b, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND };

	(void)arg;
	ck_ok(post_wr(b->qp, &wr));
}

/* Armed before, it fires after; a peer produces. */
START_TEST(armed)
{
	struct opts o = default_opts();
	struct ibv_cq *cq;
	void *context;
	struct duo d;
	int i;

	o.channel = true;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 5; i++) {
		ck_ok(post_recv(&d.a, i, 0, 64));
		ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
		ck_ok(ibv_resize_cq(d.a.rcq, 100 << i));
		on_b(&d, do_send, NULL, 0);
		ck_assert(fd_readable(d.a.chan->fd, WAIT_MS));
		ck_ok(ibv_get_cq_event(d.a.chan, &cq, &context));
		ck_assert_ptr_eq(cq, d.a.rcq);
		ibv_ack_cq_events(cq, 1);
		expect_ok(d.a.rcq, i, IBV_WC_RECV);
	}
	duo_close(&d);
}
END_TEST

/* Completions of a QP that is gone are none. */
START_TEST(destroyed_qp)
{
	struct opts o = default_opts();
	struct duo d;

	o.cqe = 64;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	write_n(&d, 0, 20);
	ck_ok(ibv_resize_cq(d.a.scq, 128)); /* ten wait beside the new ring */
	poll_n(&d, 0, 10);
	write_n(&d, 20, 10);
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	ck_ok(ibv_resize_cq(d.a.scq, 1));
	expect_none(d.a.scq, QUIET_MS);
	duo_renew(&d);
	write_n(&d, 50, 1);
	poll_n(&d, 50, 1);
	duo_close(&d);
}
END_TEST

/* ------------------------------------------------------- in traffic */

#define MESSAGES 15000

static struct {
	struct node *node;
	pthread_t thread;
	int failed;
} sender;

/* In the peer: number the messages. */
static void *send_all(void *arg)
{
	struct node *b = arg;
	struct ibv_sge sge = node_sge(b, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM };
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < MESSAGES && !sender.failed; i++) {
		wr.wr_id = i;
		wr.imm_data = htobe32(i);
		wr.send_flags = i % 32 == 31 ? IBV_SEND_SIGNALED : 0;
		sender.failed |= post_wr(b->qp, &wr);
		if (i % 32 == 31) {
			wc = wait_wc(b->scq);
			sender.failed |= wc.status;
		}
	}
	return NULL;
}

static void do_start(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(pthread_create(&sender.thread, NULL, send_all, b));
}

static void do_join(struct node *b, void *arg)
{
	(void)b;
	pthread_join(sender.thread, NULL);
	*(int *)arg = sender.failed;
}

struct receiver {
	struct duo d;
	struct node own; /* what d.a was */
	uint32_t next;
};

/* A duo of its own, whose a becomes one more QP of node n. */
static void receiver_connect(struct receiver *r, struct node *n)
{
	r->own = r->d.a;
	r->next = 0;
	r->d.a = *n;
	node_make_qp(&r->d.a);
	r->d.at_a = node_addr(&r->d.a);
	duo_connect(&r->d);
}

static void receiver_close(struct receiver *r)
{
	int failed;

	on_b(&r->d, do_join, &failed, sizeof(failed));
	ck_assert_int_eq(failed, 0);
	ck_ok(ibv_destroy_qp(r->d.a.qp));
	r->d.a = r->own;
	duo_close(&r->d);
}

static struct receiver receivers[2];

static void receive(const struct ibv_wc *wc)
{
	struct receiver *r = &receivers[wc->wr_id];

	ck_assert_int_eq(wc->status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc->qp_num, r->d.a.qp->qp_num);
	ck_assert_uint_eq(be32toh(wc->imm_data), r->next);
	r->next++;
	ck_ok(post_recv(&r->d.a, wc->wr_id, 0, 64));
}

/*
 * Two processes produce into one CQ, which is resized up and down all the
 * while.  Each receive that is posted is one entry at most, so nothing can
 * overrun.
 */
START_TEST(in_traffic)
{
	const int size[] = { 128, 4096, 300, 1000, 129 };
	struct opts o = default_opts();
	double end = now_ms() + 6 * WAIT_MS;
	int i, n, resized = 0, refused = 0;
	unsigned int polls = 0;
	struct ibv_wc wc[8];
	struct node n0;

	o.cqe = 128;
	/* both peers before there are threads: ASan's locks are not for fork */
	for (i = 0; i < 2; i++) {
		memset(&receivers[i], 0, sizeof(receivers[i]));
		duo_open_unconnected(&receivers[i].d, TWO_PROCESSES, MEM_HEAP,
				     MEM_HEAP, &o);
	}
	node_open(&n0, NULL, MEM_HEAP, &o);
	for (i = 0; i < 2; i++) {
		receiver_connect(&receivers[i], &n0);
		for (n = 0; n < 64; n++)
			ck_ok(post_recv(&receivers[i].d.a, i, 0, 64));
	}
	for (i = 0; i < 2; i++)
		on_b(&receivers[i].d, do_start, NULL, 0);
	while (receivers[0].next + receivers[1].next < 2 * MESSAGES) {
		ck_assert(now_ms() < end);
		n = ibv_poll_cq(n0.rcq, 1 + polls % 8, wc);
		ck_assert_int_ge(n, 0);
		for (i = 0; i < n; i++)
			receive(&wc[i]);
		if (++polls % 16)
			continue;
		n = ibv_resize_cq(n0.rcq, size[polls / 16 % 5]);
		if (n)
			refused++;
		else
			resized++;
		ck_assert(!n || n == EINVAL);
	}
	ck_assert_int_gt(resized, 100);
	ck_assert_int_lt(refused, resized);
	expect_none(n0.rcq, QUIET_MS);
	expect_no_async(n0.ctx);
	/* the second peer was forked with the first one's socket */
	receiver_close(&receivers[1]);
	receiver_close(&receivers[0]);
	node_close(&n0);
}
END_TEST

/* Our own threads produce, and flush, while another thread resizes. */
static void *resize_for_ever(void *arg)
{
	struct duo *d = arg;
	int i;

	for (i = 0; i < 3000; i++)
		if (ibv_resize_cq(d->a.scq, 128 << i % 4))
			return arg;
	return NULL;
}

START_TEST(among_threads)
{
	struct opts o = default_opts();
	pthread_t t;
	struct duo d;
	void *bad;
	int i, n;

	o.cqe = 128;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	pthread_create(&t, NULL, resize_for_ever, &d);
	for (n = 0; n < 40; n++) {
		for (i = 0; i < 50; i++) {
			write_n(&d, i, 4);
			poll_n(&d, i, 4);
		}
		ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
		write_n(&d, 100, 20);
		for (i = 0; i < 20; i++)
			expect(d.a.scq, 100 + i, IBV_WC_WR_FLUSH_ERR);
		duo_renew(&d);
	}
	pthread_join(t, &bad);
	ck_assert_ptr_null(bad);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("resize_cq");

	add_loop(s, errors, WHERE_COUNT);
	add_loop(s, sizes, WHERE_COUNT);
	add_loop(s, with_completions, WHERE_COUNT);
	add_loop(s, full, WHERE_COUNT);
	add_loop(s, overrun, WHERE_COUNT);
	add_loop(s, armed, WHERE_COUNT);
	add_loop(s, destroyed_qp, WHERE_COUNT);
	add(s, in_traffic);
	add_loop(s, among_threads, WHERE_COUNT);
	return run(s);
}
