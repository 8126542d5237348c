// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The requester's completion is visible before the peer's response to the
 * message.  A program that receives the response may rely on the SEND being
 * complete.
 *
 * All threads and processes run on one CPU, and the sender has a lower
 * priority than the responder.  So a receiver that is woken while the sender
 * posts usually runs before ibv_post_send returns.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "../types.h"

#define ROUNDS 1000
#define RECVS 16

static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
					  IBV_WR_RDMA_WRITE_WITH_IMM };
#define OPS (sizeof(ops) / sizeof(*ops))

static void one_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	ck_ok(sched_setaffinity(0, sizeof(set), &set));
}

/* Post receives at b and arm its CQ. */
static void do_prepare(struct node *b, void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < RECVS; i++)
		ck_ok(post_recv(b, i, 0, 64));
	ck_ok(ibv_req_notify_cq(b->rcq, 0));
}

/* b waits for an event for each message, and sends a response. */
static void do_answer(struct node *b, void *arg)
{
	struct ibv_sge sge = node_sge(b, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_cq *cq;
	void *context;
	int i;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		ck_assert(fd_readable(b->chan->fd, WAIT_MS));
		ck_ok(ibv_get_cq_event(b->chan, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		ck_ok(ibv_req_notify_cq(b->rcq, 0));
		ck_assert_int_eq(wait_wc(b->rcq).status, IBV_WC_SUCCESS);
		ck_ok(post_recv(b, i, 0, 64));
		ck_ok(post_wr(b->qp, &wr));
		ck_assert_int_eq(wait_wc(b->scq).status, IBV_WC_SUCCESS);
	}
}

static void *answering(void *arg)
{
	on_b(arg, do_answer, NULL, 0);
	return NULL;
}

static void open_pair(struct duo *d, enum where where)
{
	struct opts o = default_opts();

	one_cpu();
	o.channel = true;
	duo_open(d, where, MEM_HEAP, MEM_HEAP, &o);
}

static pthread_t start_answering(struct duo *d)
{
	pthread_t t;
	int i;

	on_b(d, do_prepare, NULL, 0);
	ck_ok(pthread_create(&t, NULL, answering, d));
	for (i = 0; i < RECVS; i++)
		ck_ok(post_recv(&d->a, i, 0, 64));
	/* give the responder a higher priority */
	ck_ok(setpriority(PRIO_PROCESS, 0, 10));
	return t;
}

/* wait_wc(), which yields between polls and checks for success. */
static struct ibv_wc wait_politely(struct ibv_cq *cq)
{
	double end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)) && now_ms() < end)
		sched_yield();
	ck_assert_int_eq(n, 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	return wc;
}

/*
 * If sends and receives of a use one CQ, the completion of each SEND is
 * before that of the response.  By opcode, with b in this or in another
 * process.
 */
START_TEST(one_cq)
{
	enum ibv_wr_opcode op = ops[_i % OPS];
	struct ibv_cq *old;
	pthread_t t;
	struct duo d;
	int i;

	open_pair(&d, _i / OPS ? TWO_PROCESSES : SAME_PROCESS);
	old = d.a.scq;
	d.a.scq = d.a.rcq;
	duo_renew(&d);
	t = start_answering(&d);
	for (i = 0; i < ROUNDS; i++) {
		ck_ok(post(&d, op, i, 0, 8, 0, 0));
		ck_assert_int_ne(wait_politely(d.a.rcq).opcode, IBV_WC_RECV);
		ck_assert_int_eq(wait_politely(d.a.rcq).opcode, IBV_WC_RECV);
		ck_ok(post_recv(&d.a, i, 0, 64));
	}
	ck_ok(pthread_join(t, NULL));
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	d.a.scq = old;
	duo_close(&d);
}
END_TEST

struct watcher {
	struct duo *d;
	_Atomic int seen; /* responses received */
	_Atomic int early; /* responses before the SEND's completion */
};

/* For each response, check that the completion of its request is visible. */
static void *watch(void *arg)
{
	struct watcher *w = arg;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		wait_politely(w->d->a.rcq);
		if (!ibv_poll_cq(w->d->a.scq, 1, &wc)) {
			w->early++;
			wait_politely(w->d->a.scq);
		}
		w->seen++;
	}
	return NULL;
}

/*
 * If sends and receives use two CQs, and another thread polls them, the
 * completion of a request is visible when the response is polled.
 */
START_TEST(two_cqs)
{
	enum ibv_wr_opcode op = ops[_i % OPS];
	pthread_t t, watching;
	struct watcher w = { 0 };
	struct duo d;
	int i;

	open_pair(&d, _i / OPS ? TWO_PROCESSES : SAME_PROCESS);
	w.d = &d;
	t = start_answering(&d);
	ck_ok(pthread_create(&watching, NULL, watch, &w));
	for (i = 0; i < ROUNDS; i++) {
		ck_ok(post(&d, op, i, 0, 8, 0, 0));
		while (w.seen <= i)
			sched_yield();
		ck_ok(post_recv(&d.a, i, 0, 64));
	}
	ck_ok(pthread_join(watching, NULL));
	ck_ok(pthread_join(t, NULL));
	ck_assert_int_eq(w.early, 0);
	duo_close(&d);
}
END_TEST

/*
 * If sender and receivers share one CQ, the completion of a UD multicast SEND
 * is before those of its receives, for one and for two members.
 */
START_TEST(datagrams)
{
	struct opts o = default_opts();
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 1 } };
	int members = 1 + _i, i, n;
	struct ibv_cq *old[2];
	struct node *node[2];
	struct ibv_ah *ah;
	struct node c;
	struct duo d;

	duo_open_unconnected(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	node_open(&c, d.a.ctx, MEM_HEAP, &o);
	node[0] = &d.b;
	node[1] = &c;
	turn(&d, IBV_QPT_UD);
	for (n = 0; n < members; n++) {
		ck_ok(ibv_destroy_qp(node[n]->qp));
		old[n] = node[n]->rcq;
		node[n]->rcq = d.a.scq;
		node[n]->qp = make_qp(node[n], IBV_QPT_UD, NULL);
		type_connect(node[n]->qp, &o, &d.at_a);
		ck_ok(ibv_attach_mcast(node[n]->qp, &group, 0));
	}
	ah = make_ah(&d.a, &group, 0);
	for (i = 0; i < 20; i++) {
		for (n = 0; n < members; n++)
			ck_ok(post_recv(node[n], i, 0, 256));
		ck_ok(post_ud(&d.a, i, 0, 8, ah, 0xffffff, QKEY));
		expect_ok(d.a.scq, i, IBV_WC_SEND);
		for (n = 0; n < members; n++)
			expect_ok(d.a.scq, i, IBV_WC_RECV);
	}
	for (n = 0; n < members; n++) {
		ck_ok(ibv_detach_mcast(node[n]->qp, &group, 0));
		ck_ok(ibv_destroy_qp(node[n]->qp));
		node[n]->qp = NULL;
		node[n]->rcq = old[n];
	}
	ck_ok(ibv_destroy_ah(ah));
	node_close(&c);
	duo_close(&d);
}
END_TEST

/*
 * If both QPs use one CQ, the completion of the sender is before that of the
 * receiver.
 */
START_TEST(loopback)
{
	struct opts o = default_opts();
	struct ibv_cq *old;
	struct duo d;
	int i;

	duo_open_unconnected(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	old = d.b.rcq;
	d.b.rcq = d.a.scq;
	duo_renew(&d);
	for (i = 0; i < 20; i++) {
		b_recv(&d, i, 0, 64);
		ck_ok(post(&d, ops[_i], i, 0, 8, 0, 0));
		ck_assert_int_lt(wait_wc(d.a.scq).opcode, IBV_WC_RECV);
		ck_assert_int_ge(wait_wc(d.a.scq).opcode, IBV_WC_RECV);
	}
	ck_ok(ibv_destroy_qp(d.b.qp));
	d.b.qp = NULL;
	d.b.rcq = old;
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("send_first");

	add_loop(s, one_cq, 2 * OPS);
	add_loop(s, two_cqs, 2 * OPS);
	add_loop(s, datagrams, 2);
	add_loop(s, loopback, OPS);
	return run(s);
}
