// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* XRC: domains, SRQs with numbers, initiator and target QPs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "layout.h"
#include "types.h"

static struct ibv_xrcd *open_xrcd(struct ibv_context *ctx, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return ibv_open_xrcd(ctx, &attr);
}

static struct ibv_srq *make_xsrq(struct node *n, struct ibv_xrcd *xrcd,
				 uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = n,
		.attr = { .max_wr = max_wr, .max_sge = max_sge },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = n->pd,
		.xrcd = xrcd,
		.cq = n->rcq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(n->ctx, &attr);

	ck_nonnull(srq);
	return srq;
}

static uint32_t srqn(struct ibv_srq *srq)
{
	uint32_t number;

	ck_ok(ibv_get_srq_num(srq, &number));
	return number;
}

static struct ibv_qp *make_target(struct node *n, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = n,
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(n->ctx, &attr);

	ck_nonnull(qp);
	return qp;
}

static struct ibv_qp *open_target(struct ibv_context *ctx,
				  struct ibv_xrcd *xrcd, uint32_t qpn)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_context = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(ctx, &attr);
}

static int new_file(void)
{
	int fd = memfd_create("domain", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* -------------------------------------------------------------- tables */

#define X_ENABLE (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define X_CONNECT                                                              \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define X_REQUESTER                                                            \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |                \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define X_RESPONDER (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define X_MORE (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS)
#define X_TGT_MORE (X_MORE | IBV_QP_MIN_RNR_TIMER)

static const struct transition initiator[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, X_ENABLE, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, X_ENABLE },
	{ IBV_QPS_INIT, IBV_QPS_RTR, X_CONNECT,
	  IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS, X_REQUESTER | IBV_QP_SQ_PSN, X_MORE },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, X_MORE },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, X_MORE },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  IBV_QP_PORT | IBV_QP_AV | IBV_QP_PKEY_INDEX | X_REQUESTER |
		  X_MORE },
};

static const struct transition target[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, X_ENABLE, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, X_ENABLE },
	{ IBV_QPS_INIT, IBV_QPS_RTR, X_CONNECT | X_RESPONDER,
	  IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
	  X_TGT_MORE },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, X_TGT_MORE },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, X_TGT_MORE },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  IBV_QP_PORT | IBV_QP_AV | IBV_QP_PKEY_INDEX | IBV_QP_TIMEOUT |
		  X_RESPONDER | X_TGT_MORE },
};

static struct ibv_qp *make_initiator(struct node *n)
{
	return make_qp(n, IBV_QPT_XRC_SEND, NULL);
}

static struct ibv_qp *make_a_target(struct node *n)
{
	return make_target(n, n->user);
}

START_TEST(states)
{
	struct opts o = default_opts();
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	n.user = open_xrcd(n.ctx, -1, O_CREAT);
	ck_nonnull(n.user);
	/* the attributes of the other half are taken and not used */
	if (_i)
		check_table(&n, make_a_target, target,
			    sizeof(target) / sizeof(*target),
			    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC);
	else
		check_table(&n, make_initiator, initiator,
			    sizeof(initiator) / sizeof(*initiator),
			    X_RESPONDER);
	ck_ok(ibv_close_xrcd(n.user));
	node_close(&n);
}
END_TEST

/* ------------------------------------------------------------- domains */

START_TEST(domain_rules)
{
	struct ibv_context *ctx = open_device(), *two = open_device();
	struct ibv_xrcd_init_attr attr = { .fd = -1, .oflags = O_CREAT };
	struct ibv_xrcd *x, *y;
	int fd = new_file(), other = new_file();

	ck_errno(ibv_open_xrcd(ctx, &attr), EINVAL); /* no mask */
	attr.comp_mask = IBV_XRCD_INIT_ATTR_FD;
	ck_errno(ibv_open_xrcd(ctx, &attr), EINVAL);
	attr.comp_mask = 0xff;
	ck_assert_ptr_null(ibv_open_xrcd(ctx, &attr));
	ck_errno(open_xrcd(ctx, -1, 0), EINVAL);
	ck_errno(open_xrcd(ctx, fd, O_APPEND), EINVAL);
	ck_errno(open_xrcd(ctx, 1000, O_CREAT), EBADF);
	/* not there yet */
	ck_errno(open_xrcd(ctx, fd, 0), EAGAIN);
	ck_errno(open_xrcd(ctx, fd, O_EXCL), EAGAIN);
	x = open_xrcd(ctx, fd, O_CREAT | O_EXCL);
	ck_nonnull(x);
	/* there, in whatever context */
	ck_errno(open_xrcd(ctx, fd, O_CREAT | O_EXCL), EINVAL);
	ck_errno(open_xrcd(two, fd, O_CREAT | O_EXCL), EINVAL);
	y = open_xrcd(two, fd, 0);
	ck_nonnull(y);
	/* another file is another domain */
	ck_errno(open_xrcd(two, other, 0), EAGAIN);
	ck_ok(ibv_close_xrcd(x));
	ck_errno(open_xrcd(ctx, fd, O_CREAT | O_EXCL), EINVAL);
	/* with the last it ends */
	ck_ok(ibv_close_xrcd(y));
	ck_errno(open_xrcd(ctx, fd, 0), EAGAIN);
	close(fd);
	close(other);
	ck_ok(ibv_close_device(ctx));
	ck_ok(ibv_close_device(two));
}
END_TEST

static int other_process(void *arg)
{
	struct ibv_context *ctx = open_device();
	struct ibv_xrcd *x = open_xrcd(ctx, *(int *)arg, 0);

	if (!x || open_xrcd(ctx, *(int *)arg, O_CREAT | O_EXCL))
		return 1;
	return 0; /* and dies with it open */
}

START_TEST(domain_across_processes)
{
	struct ibv_context *ctx;
	struct ibv_xrcd *x;
	int fd = new_file();
	pid_t pid;

	pid = spawn_held(other_process, &fd);
	ctx = open_device();
	x = open_xrcd(ctx, fd, O_CREAT | O_EXCL);
	ck_nonnull(x);
	release_held();
	ck_assert_int_eq(reap_child(pid), 0);
	ck_ok(ibv_close_xrcd(x));
	/* the dead have left it */
	ck_ok(ibv_close_device(open_device()));
	ck_errno(open_xrcd(ctx, fd, 0), EAGAIN);
	ck_ok(ibv_close_device(ctx));
	close(fd);
}
END_TEST

START_TEST(all_domains)
{
	static struct ibv_xrcd *x[URXE_MAX_XRCD];
	struct ibv_context *ctx = open_device();
	int i;

	for (i = 0; i < URXE_MAX_XRCD; i++) {
		x[i] = open_xrcd(ctx, -1, O_CREAT);
		ck_nonnull(x[i]);
	}
	ck_errno(open_xrcd(ctx, -1, O_CREAT), ENOMEM);
	for (i = 0; i < URXE_MAX_XRCD; i++)
		ck_ok(ibv_close_xrcd(x[i]));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

START_TEST(busy)
{
	struct opts o = default_opts();
	struct ibv_xrcd *x;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	x = open_xrcd(n.ctx, -1, O_CREAT);
	ck_nonnull(x);
	srq = make_xsrq(&n, x, 4, 1);
	ck_assert_int_eq(ibv_close_xrcd(x), EBUSY);
	qp = make_target(&n, x);
	ck_ok(ibv_destroy_srq(srq));
	ck_assert_int_eq(ibv_close_xrcd(x), EBUSY);
	ck_ok(ibv_destroy_qp(qp));
	/* the SRQ's CQ is busy, too */
	srq = make_xsrq(&n, x, 4, 1);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = NULL;
	ck_assert_int_eq(ibv_destroy_cq(n.rcq), EBUSY);
	ck_ok(ibv_destroy_srq(srq));
	ck_ok(ibv_close_xrcd(x));
	node_close(&n);
}
END_TEST

START_TEST(create_errors)
{
	struct ibv_srq_init_attr_ex sa = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.srq_type = IBV_SRQT_XRC,
	};
	struct ibv_qp_init_attr_ex qa = { .qp_type = IBV_QPT_XRC_RECV };
	struct opts o = default_opts();
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_send_wr swr = { 0 }, *sbad;
	struct ibv_srq *srq;
	struct ibv_xrcd *x;
	struct ibv_qp *qp;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	x = open_xrcd(n.ctx, -1, O_CREAT);
	ck_nonnull(x);
	sa.pd = n.pd;
	sa.xrcd = x;
	sa.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
		       IBV_SRQ_INIT_ATTR_XRCD;
	ck_errno(ibv_create_srq_ex(n.ctx, &sa), EINVAL); /* no CQ */
	sa.cq = n.rcq;
	sa.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
		       IBV_SRQ_INIT_ATTR_CQ;
	ck_errno(ibv_create_srq_ex(n.ctx, &sa), EINVAL); /* no domain */
	ck_errno(ibv_create_qp_ex(n.ctx, &qa), EINVAL); /* no domain */
	/* neither end receives by itself, a target does not send */
	srq = make_srq(&n, 4, 1);
	memset(&qa, 0, sizeof(qa));
	qa.qp_type = IBV_QPT_XRC_SEND;
	qa.comp_mask = IBV_QP_INIT_ATTR_PD;
	qa.pd = n.pd;
	qa.send_cq = n.scq;
	qa.srq = srq;
	ck_errno(ibv_create_qp_ex(n.ctx, &qa), EINVAL);
	ck_ok(ibv_destroy_srq(srq));
	qp = make_target(&n, x);
	ck_assert_int_ne(ibv_post_recv(qp, &wr, &bad), 0);
	ck_assert_int_ne(ibv_post_send(qp, &swr, &sbad), 0);
	ck_ok(ibv_destroy_qp(qp));
	qp = make_qp(&n, IBV_QPT_XRC_SEND, NULL);
	ck_assert_int_ne(ibv_post_recv(qp, &wr, &bad), 0);
	ck_ok(ibv_destroy_qp(qp));
	ck_ok(ibv_close_xrcd(x));
	node_close(&n);
}
END_TEST

/* ------------------------------------------------------------ messages */

/* b's side: domain, target QP and two SRQs. */
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
	if (where == TWO_PROCESSES) { /* b is forked already */
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

static void post_x(struct duo *d, enum ibv_wr_opcode op, uint64_t wr_id,
		   uint32_t len, size_t b_off, uint32_t number)
{
	struct ibv_sge sge = node_sge(&d->a, 0, len);
	struct ibv_send_wr wr = rdma_wr(d, op, wr_id, &sge, 1, b_off);

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = d->at_b.base + b_off;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.rkey = d->at_b.rkey;
	}
	wr.qp_type.xrc.remote_srqn = number;
	ck_ok(post_wr(d->a.qp, &wr));
}

/* Each message to the SRQ that it names. */
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

START_TEST(rnr_and_wake_up)
{
	struct far_arg a;
	struct duo d;

	a = open_xrc(&d, _i);
	b_post(&d, 1, 1, 0, 64); /* in the other SRQ */
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

/* IB A14.5.4: an SRQ that is none of the domain's is an invalid request. */
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
		/* its number is not told, but the next one in its table */
		srq = make_srq(&d.a, 4, 1);
		number = 1u << 20;
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
	/* another shape under the number that is free now */
	f->srq[0] = make_xsrq(b, f->xrcd, 64, 8);
	g->now = srqn(f->srq[0]);
	for (i = 0; i < 40; i++)
		ck_ok(post_srq(f->srq[0], b, (uint64_t)i, 128 * (size_t)i,
			       128));
}

/* A number that is used again means the new SRQ. */
START_TEST(srq_number_again)
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

/* The SRQ lives with the one process, the target QP with another. */
struct third {
	int fd;
	uint32_t srqn, rkey;
	uint64_t base;
	_Atomic int posted, stop;
};

static int srq_owner(void *arg)
{
	struct third *t = arg;
	struct opts o = default_opts();
	struct ibv_xrcd *x;
	struct ibv_srq *srq;
	struct ibv_wc wc;
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
	for (i = 0; i < 4; i++) {
		wc = wait_wc(n.rcq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert(node_has(&n, 4096 * (size_t)i, wc.byte_len,
				   (unsigned int)i));
	}
	/* RDMA goes to the SRQ's memory */
	ck_assert(node_has(&n, 40000, 64, 3));
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

static void wait_for(_Atomic int *word, int value)
{
	double end = now_ms() + WAIT_MS;

	while (*word != value) {
		ck_assert(now_ms() < end);
		sleep_ms(1);
	}
}

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

	t->fd = new_file();
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
	wait_for(&t->stop, 1);
	if (_i) {
		/* the SRQ's owner dies: there is no such SRQ any more */
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

/* ------------------------------------------------------------- open_qp */

START_TEST(open_qp_errors)
{
	struct opts o = default_opts();
	struct ibv_qp_open_attr attr = { 0 };
	struct ibv_xrcd *x, *y;
	struct ibv_qp *qp;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	x = open_xrcd(n.ctx, -1, O_CREAT);
	y = open_xrcd(n.ctx, -1, O_CREAT);
	ck_nonnull(x);
	ck_nonnull(y);
	qp = make_target(&n, x);
	ck_errno(ibv_open_qp(n.ctx, &attr), EINVAL);
	ck_errno(open_target(n.ctx, y, qp->qp_num), EINVAL);
	ck_errno(open_target(n.ctx, x, qp->qp_num ^ 0x800000), EINVAL);
	ck_errno(open_target(n.ctx, x, n.qp->qp_num), EINVAL);
	attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			 IBV_QP_OPEN_ATTR_TYPE;
	attr.qp_num = qp->qp_num;
	attr.xrcd = x;
	attr.qp_type = IBV_QPT_RC;
	ck_errno(ibv_open_qp(n.ctx, &attr), EINVAL);
	ck_ok(ibv_destroy_qp(qp));
	ck_errno(open_target(n.ctx, x, attr.qp_num), EINVAL);
	ck_ok(ibv_close_xrcd(x));
	ck_ok(ibv_close_xrcd(y));
	node_close(&n);
}
END_TEST

/* Whoever opened it may bring it up: its creator did the first step only. */
START_TEST(opened_qp)
{
	struct opts o = default_opts();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_xrcd *x, *y;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct duo d;
	int fd = new_file();

	duo_open_unconnected(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	x = open_xrcd(d.b.ctx, fd, O_CREAT);
	y = open_xrcd(d.a.ctx, fd, 0);
	ck_nonnull(x);
	ck_nonnull(y);
	srq = make_xsrq(&d.b, x, 4, 1);
	ck_ok(ibv_destroy_qp(d.b.qp));
	d.b.qp = make_target(&d.b, x);
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = make_qp(&d.a, IBV_QPT_XRC_SEND, NULL);
	d.at_a = node_addr(&d.a);
	d.at_b = node_addr(&d.b);
	type_to(d.b.qp, IBV_QPS_INIT, &o, &d.at_a);
	type_to(d.b.qp, IBV_QPS_RTR, &o, &d.at_a);
	qp = open_target(d.a.ctx, y, d.at_b.qpn);
	ck_nonnull(qp);
	ck_assert_uint_eq(qp->qp_num, d.at_b.qpn);
	ck_assert_ptr_eq(qp->qp_context, y);
	ck_assert_int_eq(ibv_close_xrcd(y), EBUSY);
	ck_ok(ibv_query_qp(qp, &attr, -1, &init));
	ck_assert_int_eq(attr.qp_state, IBV_QPS_RTR);
	ck_assert_uint_eq(attr.dest_qp_num, d.at_a.qpn);
	ck_assert_uint_eq(attr.qp_access_flags, o.qp_access);
	type_to(qp, IBV_QPS_RTS, &o, &d.at_a);
	ck_assert_int_eq(qp_state(d.b.qp), IBV_QPS_RTS);
	type_connect(d.a.qp, &o, &d.at_b);
	ck_ok(post_srq(srq, &d.b, 1, 0, 64));
	post_x(&d, IBV_WR_SEND, 1, 8, 0, srqn(srq));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	post_x(&d, IBV_WR_RDMA_WRITE, 2, 8, 0, srqn(srq));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	/* closing a further handle leaves the QP as it is */
	ck_ok(ibv_destroy_qp(qp));
	ck_ok(ibv_close_xrcd(y));
	post_x(&d, IBV_WR_RDMA_WRITE, 3, 8, 0, srqn(srq));
	expect_ok(d.a.scq, 3, IBV_WC_RDMA_WRITE);
	ck_ok(ibv_destroy_qp(d.b.qp));
	d.b.qp = NULL;
	ck_ok(ibv_destroy_srq(srq));
	ck_ok(ibv_close_xrcd(x));
	duo_close(&d);
	close(fd);
}
END_TEST

/* man ibv_open_qp: the QP ends with its last handle. */
START_TEST(opened_qp_outlives_its_creator)
{
	struct opts o = default_opts();
	struct ibv_srq *srq;
	struct ibv_xrcd *x;
	struct ibv_qp *qp;
	struct duo d;

	duo_open_unconnected(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	x = open_xrcd(d.b.ctx, -1, O_CREAT);
	ck_nonnull(x);
	srq = make_xsrq(&d.b, x, 4, 1);
	ck_ok(ibv_destroy_qp(d.b.qp));
	d.b.qp = make_target(&d.b, x);
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = make_qp(&d.a, IBV_QPT_XRC_SEND, NULL);
	d.at_a = node_addr(&d.a);
	d.at_b = node_addr(&d.b);
	type_connect(d.b.qp, &o, &d.at_a);
	type_connect(d.a.qp, &o, &d.at_b);
	qp = open_target(d.b.ctx, x, d.at_b.qpn);
	ck_nonnull(qp);
	ck_ok(ibv_destroy_qp(d.b.qp));
	d.b.qp = NULL;
	post_x(&d, IBV_WR_RDMA_WRITE, 1, 8, 0, srqn(srq));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_ok(ibv_destroy_qp(qp));
	ck_ok(ibv_destroy_srq(srq));
	ck_ok(ibv_close_xrcd(x));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("xrc");

	add_loop(s, states, 2);
	add(s, domain_rules);
	add(s, domain_across_processes);
	add(s, all_domains);
	add(s, busy);
	add(s, create_errors);
	add_loop(s, sends, WHERE_COUNT);
	add_loop(s, rdma_and_atomics, WHERE_COUNT);
	add_loop(s, rnr_and_wake_up, WHERE_COUNT);
	add_loop(s, wrong_srq, WRONG_COUNT * WHERE_COUNT);
	add_loop(s, srq_number_again, WHERE_COUNT);
	add_loop(s, srq_in_another_process, 2);
	add(s, open_qp_errors);
	add(s, opened_qp);
	add(s, opened_qp_outlives_its_creator);
	return run(s);
}
