// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC: messages from an initiator QP to the SRQs of the target QP's XRC
 * domain.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>

#include "xrc.h"

/* ------------------------------------------------------------ messages */

/* b's XRC domain and two SRQs; b->qp is the target QP. */
struct far_end {
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq[2];
};

struct far_arg {
	int fd;
	struct addr addr;
	uint32_t srqn[2];
};

static void do_target(struct node *b, void *arg)
{
	static struct far_end ends[2];
	struct far_end *f = &ends[0];
	struct far_arg *a = arg;
	int i;

	b->user = f;
	f->xrcd = open_xrcd(b->ctx, a->fd, O_CREAT);
	ck_nonnull(f->xrcd);
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = make_target(b, f->xrcd);
	for (i = 0; i < 2; i++) {
		f->srq[i] = make_xsrq(b, f->xrcd, 16, 2);
		a->srqn[i] = srqn(f->srq[i]);
	}
	a->addr = node_addr(b);
}

static void do_connect(struct node *b, void *arg)
{
	type_connect(b->qp, &b->o, arg);
}

static struct far_arg open_xrc_opts(struct duo *d, enum where where,
				    const struct opts *o)
{
	struct far_arg a = { .fd = new_file() };

	duo_open_unconnected(d, where, MEM_HEAP, MEM_HEAP, o);
	if (where == TWO_PROCESSES) { /* b was forked before it */
		close(a.fd);
		a.fd = -1;
	}
	on_b(d, do_target, &a, sizeof(a));
	d->at_b = a.addr;
	ck_ok(ibv_destroy_qp(d->a.qp));
	d->a.qp = make_qp(&d->a, IBV_QPT_XRC_SEND, NULL);
	d->at_a = node_addr(&d->a);
	on_b(d, do_connect, &d->at_a, sizeof(d->at_a));
	type_connect(d->a.qp, o, &d->at_b);
	return a;
}

static struct far_arg open_xrc(struct duo *d, enum where where)
{
	struct opts o = default_opts();

	return open_xrc_opts(d, where, &o);
}

static void do_close(struct node *b, void *arg)
{
	struct far_end *f = b->user;
	int i;

	(void)arg;
	if (b->qp)
		ck_ok(ibv_destroy_qp(b->qp));
	b->qp = NULL;
	for (i = 0; i < 2; i++)
		if (f->srq[i])
			ck_ok(ibv_destroy_srq(f->srq[i]));
	ck_ok(ibv_close_xrcd(f->xrcd));
}

static void close_xrc(struct duo *d, struct far_arg *a)
{
	on_b(d, do_close, NULL, 0);
	duo_close(d);
	if (a->fd >= 0)
		close(a->fd);
}

struct post_arg {
	int which;
	uint64_t wr_id;
	size_t off;
	uint32_t len;
};

static void do_post(struct node *b, void *arg)
{
	struct far_end *f = b->user;
	struct post_arg *p = arg;

	ck_ok(post_srq(f->srq[p->which], b, p->wr_id, p->off, p->len));
}

static void b_post(struct duo *d, int which, uint64_t wr_id, size_t off,
		   uint32_t len)
{
	struct post_arg p = { which, wr_id, off, len };

	on_b(d, do_post, &p, sizeof(p));
}

/* Each SEND is received by the SRQ whose number is in the WR. */
START_TEST(sends)
{
	static const uint32_t len[] = { 0, 1, 8, 63, 64, 65, 80, 81, 5000 };
	struct far_arg a;
	struct ibv_wc wc;
	struct duo d;
	size_t i;

	a = open_xrc(&d, _i);
	ck_assert_uint_ne(a.srqn[0], a.srqn[1]);
	for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
		int which = (int)(i % 2);

		node_fill(&d.a, 0, len[i], (unsigned int)i);
		b_post(&d, which, 2 * i + (size_t)which, 0, len[i]);
		post_x(&d, IBV_WR_SEND_WITH_IMM, i, len[i], 0, a.srqn[which]);
		expect_ok(d.a.scq, i, IBV_WC_SEND);
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, 2 * i + (size_t)which);
		ck_assert_uint_eq(wc.byte_len, len[i]);
		ck_assert_uint_eq(wc.qp_num, d.at_b.qpn);
		ck_assert(b_has(&d, 0, len[i], (unsigned int)i));
	}
	close_xrc(&d, &a);
}
END_TEST

/* RDMA and atomic requests over XRC QPs. */
START_TEST(rdma_and_atomics)
{
	struct far_arg a;
	struct ibv_wc wc;
	uint64_t old;
	struct duo d;

	a = open_xrc(&d, _i);
	node_fill(&d.a, 0, 2000, 1);
	post_x(&d, IBV_WR_RDMA_WRITE, 1, 2000, 0, a.srqn[0]);
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 0, 2000, 1));
	b_post(&d, 1, 7, 0, 0);
	post_x(&d, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 100, 4096, a.srqn[1]);
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	ck_assert_uint_eq(wc.wr_id, 7);
	b_fill(&d, 8192, 300, 9);
	post_x(&d, IBV_WR_RDMA_READ, 3, 300, 8192, a.srqn[0]);
	expect_ok(d.a.scq, 3, IBV_WC_RDMA_READ);
	ck_assert(node_has(&d.a, 0, 300, 9));
	b_store64(&d, 512, 37);
	post_x(&d, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 8, 512, a.srqn[0]);
	expect_ok(d.a.scq, 4, IBV_WC_FETCH_ADD);
	node_get(&d.a, 0, &old, 8);
	ck_assert(old == 37 && b_load64(&d, 512) == 42);
	close_xrc(&d, &a);
}
END_TEST

/* A SEND to an empty SRQ waits for a receive of that SRQ. */
START_TEST(rnr_and_wake_up)
{
	struct far_arg a;
	struct duo d;

	a = open_xrc(&d, _i);
	b_post(&d, 1, 1, 0, 64); /* a receive of the other SRQ */
	post_x(&d, IBV_WR_SEND, 1, 8, 0, a.srqn[0]);
	expect_none(d.a.scq, QUIET_MS);
	b_post(&d, 0, 2, 0, 64);
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).wr_id, 2);
	close_xrc(&d, &a);
}
END_TEST

static void do_kill_srq(struct node *b, void *arg)
{
	struct far_end *f = b->user;

	(void)arg;
	ck_ok(ibv_destroy_srq(f->srq[0]));
	f->srq[0] = NULL;
}

enum wrong_srq { NO_SUCH, ZERO, BASIC, OTHER_DOMAIN, DESTROYED, WRONG_COUNT };

/*
 * IB A14.5.4: a SEND to an SRQ that is not of the target QP's domain is an
 * invalid request.
 */
START_TEST(wrong_srq)
{
	enum wrong_srq how = _i / WHERE_COUNT;
	struct ibv_xrcd *x = NULL;
	struct ibv_srq *srq = NULL;
	struct far_arg a;
	uint32_t number;
	struct duo d;

	a = open_xrc(&d, _i % WHERE_COUNT);
	number = a.srqn[0];
	b_post(&d, 0, 1, 0, 64);
	b_post(&d, 1, 1, 0, 64);
	post_x(&d, IBV_WR_SEND, 1, 8, 0, number);
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	if (how == NO_SUCH)
		number ^= 0x700;
	if (how == ZERO)
		number = 0;
	if (how == BASIC) {
		/*
		 * ibv_get_srq_num refuses a basic SRQ.  It takes the lowest
		 * free index: that of the XRC SRQ which is destroyed here.
		 */
		x = open_xrcd(d.a.ctx, -1, O_CREAT);
		ck_nonnull(x);
		srq = make_xsrq(&d.a, x, 4, 1);
		number = srqn(srq);
		ck_ok(ibv_destroy_srq(srq));
		srq = make_srq(&d.a, 4, 1);
		ck_ok(post_srq(srq, &d.a, 1, 0, 64));
	}
	if (how == OTHER_DOMAIN) {
		x = open_xrcd(d.a.ctx, -1, O_CREAT);
		ck_nonnull(x);
		srq = make_xsrq(&d.a, x, 4, 1);
		number = srqn(srq);
		ck_ok(post_srq(srq, &d.a, 1, 0, 64));
	}
	if (how == DESTROYED)
		on_b(&d, do_kill_srq, NULL, 0);
	post_x(&d, IBV_WR_SEND, 2, 8, 0, number);
	expect(d.a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
	b_expect_async(&d, IBV_EVENT_QP_REQ_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	if (srq)
		ck_ok(ibv_destroy_srq(srq));
	if (x)
		ck_ok(ibv_close_xrcd(x));
	close_xrc(&d, &a);
}
END_TEST

struct again {
	uint32_t old, now;
};

static void do_srq_again(struct node *b, void *arg)
{
	struct far_end *f = b->user;
	struct again *g = arg;
	int i;

	ck_ok(ibv_destroy_srq(f->srq[0]));
	/* of another size; it may get the number that is free now */
	f->srq[0] = make_xsrq(b, f->xrcd, 64, 8);
	g->now = srqn(f->srq[0]);
	for (i = 0; i < 40; i++)
		ck_ok(post_srq(f->srq[0], b, (uint64_t)i, 128 * (size_t)i,
			       128));
}

/* If an SRQ number is reused, requests use the new SRQ. */
START_TEST(srq_number_reused)
{
	struct again g;
	struct far_arg a;
	struct ibv_wc wc;
	struct duo d;
	int i;

	a = open_xrc(&d, _i);
	b_post(&d, 0, 1, 0, 128);
	post_x(&d, IBV_WR_SEND, 1, 100, 0, a.srqn[0]);
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	on_b(&d, do_srq_again, &g, sizeof(g));
	for (i = 0; i < 40; i++) {
		node_fill(&d.a, 0, 100, (unsigned int)i);
		post_x(&d, IBV_WR_SEND, 2, 100, 0, g.now);
		expect_ok(d.a.scq, 2, IBV_WC_SEND);
		wc = b_wait_recv(&d);
		ck_assert_uint_eq(wc.wr_id, i);
		ck_assert(b_has(&d, 128 * (size_t)i, 100, (unsigned int)i));
	}
	close_xrc(&d, &a);
}
END_TEST

/* ------------------------------------------------------ three processes */

/*
 * Shared memory of a process that owns the SRQ, and of the test's process,
 * which owns the target QP.
 */
struct third {
	int fd;
	uint32_t srqn, rkey;
	uint64_t base;
	_Atomic int posted, stop;
	bool gone; /* the memory of the first receive, before it is polled */
};

static void wait_for(_Atomic int *word, int value)
{
	double end = now_ms() + WAIT_MS;

	while (*word != value) {
		ck_assert(now_ms() < end);
		sleep_ms(1);
	}
}

/* The four messages arrive. */
static void take_messages(struct node *n)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 4; i++) {
		wc = wait_wc(n->rcq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert(node_has(n, 4096 * (size_t)i, wc.byte_len,
				   (unsigned int)i));
	}
	/* rkeys of requests are those of the SRQ's context */
	ck_assert(node_has(n, 40000, 64, 3));
}

/*
 * The first message cannot be placed when it is polled, which breaks the target
 * QP.  Those that follow are flushed.
 */
static void take_flushed(struct node *n)
{
	struct ibv_wc wc;
	int i;

	ck_ok(mprotect(n->buf, 4096, PROT_NONE));
	for (i = 0; i < 4; i++) {
		wc = wait_wc(n->rcq);
		ck_assert_uint_eq(wc.wr_id, i);
		ck_assert_int_eq(wc.status,
				 i ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_PROT_ERR);
	}
	ck_ok(mprotect(n->buf, 4096, PROT_READ | PROT_WRITE));
}

static int srq_owner(void *arg)
{
	struct third *t = arg;
	struct opts o = default_opts();
	struct ibv_xrcd *x;
	struct ibv_srq *srq;
	struct node n;
	int i;

	node_open(&n, NULL, MEM_HEAP, &o);
	x = open_xrcd(n.ctx, t->fd, O_CREAT);
	if (!x)
		return 1;
	srq = make_xsrq(&n, x, 16, 1);
	t->srqn = srqn(srq);
	t->rkey = n.mr->rkey;
	t->base = n.base;
	for (i = 0; i < 4; i++)
		ck_ok(post_srq(srq, &n, (uint64_t)i, 4096 * (size_t)i, 4096));
	t->posted = 1;
	wait_for(&t->posted, 2);
	(t->gone ? take_flushed : take_messages)(&n);
	t->stop = 1;
	if (t->fd < 0)
		pause();
	while (t->stop != 2)
		sleep_ms(1);
	ck_ok(ibv_destroy_srq(srq));
	ck_ok(ibv_close_xrcd(x));
	node_close(&n);
	return 0;
}

/*
 * The SRQ and the target QP belong to different processes.  With _i = 1 the
 * SRQ's owner is killed; then a SEND is an invalid request.  With _i = 2 it
 * removes memory before it polls.
 */
START_TEST(srq_in_another_process)
{
	static const uint32_t len[] = { 8, 64, 65, 4000 };
	struct third *t = shared_page();
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct far_arg a = { 0 };
	struct ibv_sge sge;
	struct duo d;
	pid_t pid;
	int i;

	if (_i == 2 && (under_adversary() || under_adoption()))
		return; /* receives are placed at once */
	t->fd = new_file();
	t->gone = _i == 2;
	a.fd = t->fd;
	pid = spawn(srq_owner, t);
	duo_open_unconnected(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, do_target, &a, sizeof(a));
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = make_qp(&d.a, IBV_QPT_XRC_SEND, NULL);
	d.at_a = node_addr(&d.a);
	d.at_b = a.addr;
	do_connect(&d.b, &d.at_a);
	type_connect(d.a.qp, &o, &d.at_b);
	wait_for(&t->posted, 1);
	node_fill(&d.a, 0, 64, 3);
	sge = node_sge(&d.a, 0, 64);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 9, &sge, 1, 0);
	wr.qp_type.xrc.remote_srqn = t->srqn;
	wr.wr.rdma.remote_addr = t->base + 40000;
	wr.wr.rdma.rkey = t->rkey;
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 9, IBV_WC_RDMA_WRITE);
	for (i = 0; i < 4; i++) {
		node_fill(&d.a, 0, len[i], (unsigned int)i);
		post_x(&d, IBV_WR_SEND, 1, len[i], 0, t->srqn);
		expect_ok(d.a.scq, 1, IBV_WC_SEND);
	}
	expect_none(d.b.rcq, 1);
	t->posted = 2;
	wait_for(&t->stop, 1);
	ck_assert_int_eq(b_state(&d), t->gone ? IBV_QPS_ERR : IBV_QPS_RTS);
	if (_i == 1) {
		/*
		 * the SRQ's owner exits, and the SRQ does not exist any more
		 */
		kill(pid, SIGKILL);
		ck_assert_int_eq(reap_child(pid), -SIGKILL);
		sleep_ms(300);
		post_x(&d, IBV_WR_SEND, 2, 8, 0, t->srqn);
		expect(d.a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
	} else {
		t->stop = 2;
		ck_assert_int_eq(reap_child(pid), 0);
	}
	close_xrc(&d, &a);
}
END_TEST

int main(void)
{
	Suite *s = suite("xrc");

	add_loop(s, sends, WHERE_COUNT);
	add_loop(s, rdma_and_atomics, WHERE_COUNT);
	add_loop(s, rnr_and_wake_up, WHERE_COUNT);
	add_loop(s, wrong_srq, WRONG_COUNT * WHERE_COUNT);
	add_loop(s, srq_number_reused, WHERE_COUNT);
	add_loop(s, srq_in_another_process, 3);
	return run(s);
}
