// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC: state tables, domains (ibv_open_xrcd), and target QPs that are opened
 * by number (ibv_open_qp).
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "shared/layout.h"
#include "xrc.h"

/* -------------------------------------------------------------- tables */

#define X_ENABLE (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define X_CONNECT \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define X_REQUESTER                                             \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
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
	  IBV_QP_PORT | IBV_QP_AV | IBV_QP_PKEY_INDEX | X_REQUESTER | X_MORE },
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

/*
 * The transitions of initiator (_i = 0) and target QPs (_i = 1), and their
 * attributes.
 */
START_TEST(states)
{
	struct opts o = default_opts();
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	n.user = open_xrcd(n.ctx, -1, O_CREAT);
	ck_nonnull(n.user);
	/* attributes of the other direction are accepted and ignored */
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

/*
 * ibv_open_xrcd(3): O_CREAT and O_EXCL, with the errno values of the kernel's
 * uverbs.  A domain belongs to a file and exists until its last handle is
 * closed.
 */
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
	/* the domain does not exist yet */
	ck_errno(open_xrcd(ctx, fd, 0), EAGAIN);
	ck_errno(open_xrcd(ctx, fd, O_EXCL), EAGAIN);
	x = open_xrcd(ctx, fd, O_CREAT | O_EXCL);
	ck_nonnull(x);
	/* it exists, for each context */
	ck_errno(open_xrcd(ctx, fd, O_CREAT | O_EXCL), EINVAL);
	ck_errno(open_xrcd(two, fd, O_CREAT | O_EXCL), EINVAL);
	y = open_xrcd(two, fd, 0);
	ck_nonnull(y);
	/* another file is another domain */
	ck_errno(open_xrcd(two, other, 0), EAGAIN);
	ck_ok(ibv_close_xrcd(x));
	ck_errno(open_xrcd(ctx, fd, O_CREAT | O_EXCL), EINVAL);
	/* the last handle is closed */
	ck_ok(ibv_close_xrcd(y));
	ck_errno(open_xrcd(ctx, fd, 0), EAGAIN);
	close(fd);
	close(other);
	ck_ok(ibv_close_device(ctx));
	ck_ok(ibv_close_device(two));
}
END_TEST

static int file_in_tmp(void)
{
	char path[] = "/tmp/urxe-test.XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_ok(unlink(path));
	return fd;
}

/*
 * A domain keeps its file open, so that no new file gets the inode number and
 * with it the domain.
 */
START_TEST(domain_keeps_its_file)
{
	struct ibv_context *ctx = open_device();
	struct ibv_xrcd *x;
	int fd;

	ck_errno(open_xrcd(ctx, -5, O_CREAT), EBADF);
	fd = file_in_tmp();
	x = open_xrcd(ctx, fd, O_CREAT);
	ck_nonnull(x);
	close(fd);
	fd = file_in_tmp();
	ck_errno(open_xrcd(ctx, fd, 0), EAGAIN);
	close(fd);
	ck_ok(ibv_close_xrcd(x));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * A domain of another context is refused, and an XRC SRQ is refused for QPs
 * of other types.
 */
START_TEST(foreign_domain_and_qp_types)
{
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp_open_attr open_attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct opts o = default_opts();
	struct ibv_qp_init_attr init = { .cap = o.cap };
	struct ibv_context *other;
	struct ibv_xrcd *x, *theirs;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct node n;
	size_t i;

	node_open(&n, NULL, MEM_HEAP, &o);
	other = open_device();
	x = open_xrcd(n.ctx, -1, O_CREAT);
	theirs = open_xrcd(other, -1, O_CREAT);
	ck_nonnull(x);
	ck_nonnull(theirs);
	target.xrcd = theirs;
	ck_errno(ibv_create_qp_ex(n.ctx, &target), EINVAL);
	qp = make_target(&n, x);
	open_attr.qp_num = qp->qp_num;
	open_attr.xrcd = x;
	ck_errno(ibv_open_qp(other, &open_attr), EINVAL);
	srq = make_xsrq(&n, x, 4, 1);
	init.srq = srq;
	init.send_cq = init.recv_cq = n.rcq;
	for (i = 0; i < sizeof(types) / sizeof(*types); i++) {
		init.qp_type = types[i];
		ck_errno(ibv_create_qp(n.pd, &init), EINVAL);
	}
	ck_ok(ibv_destroy_srq(srq));
	ck_ok(ibv_destroy_qp(qp));
	ck_ok(ibv_close_xrcd(theirs));
	ck_ok(ibv_close_xrcd(x));
	ck_ok(ibv_close_device(other));
	node_close(&n);
}
END_TEST

/* Open the domain that exists, and exit without closing it. */
static int other_process(void *arg)
{
	struct ibv_context *ctx = open_device();
	struct ibv_xrcd *x = open_xrcd(ctx, *(int *)arg, 0);

	if (!x || open_xrcd(ctx, *(int *)arg, O_CREAT | O_EXCL))
		return 1;
	return 0; /* exit without closing it */
}

/*
 * A domain is found by its file in another process.  Handles of a process
 * that exited do not keep it.
 */
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
	/* the handle of the process that exited does not count */
	ck_errno(open_xrcd(ctx, fd, 0), EAGAIN);
	ck_ok(ibv_close_device(ctx));
	close(fd);
}
END_TEST

/* URXE_MAX_XRCD domains can be opened, one more is ENOMEM. */
START_TEST(max_domains)
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

/* XRC SRQs and target QPs keep the domain busy, and an XRC SRQ its CQ. */
START_TEST(busy_domain)
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
	/* an XRC SRQ keeps its CQ busy */
	srq = make_xsrq(&n, x, 4, 1);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = NULL;
	ck_assert_int_eq(ibv_destroy_cq(n.rcq), EBUSY);
	ck_ok(ibv_destroy_srq(srq));
	ck_ok(ibv_close_xrcd(x));
	node_close(&n);
}
END_TEST

/*
 * A target QP may have a PD, which is ignored.  librdmacm passes one, and
 * reads it from the QP for its SRQ.
 */
START_TEST(target_with_a_pd)
{
	struct ibv_qp_init_attr_ex qa = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD,
	};
	struct opts o = default_opts();
	struct ibv_xrcd *x;
	struct ibv_qp *qp;
	struct ibv_pd *pd;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	x = open_xrcd(n.ctx, -1, O_CREAT);
	ck_nonnull(x);
	pd = ibv_alloc_pd(n.ctx);
	ck_nonnull(pd);
	qa.pd = pd;
	qa.xrcd = x;
	qp = ibv_create_qp_ex(n.ctx, &qa);
	ck_nonnull(qp);
	ck_assert_ptr_eq(qp->pd, pd);
	ck_ok(ibv_dealloc_pd(pd)); /* the QP does not keep it busy */
	ck_ok(ibv_destroy_qp(qp));
	ck_ok(ibv_close_xrcd(x));
	node_close(&n);
}
END_TEST

/*
 * Attributes that XRC SRQs and QPs lack or must not have.  Initiator and
 * target QPs have no receive queue, target QPs no send queue.
 */
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
	/* no receive queue in either, no send queue in a target */
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

/*
 * ibv_open_qp refuses QPs of another domain or type, and numbers that do not
 * exist.
 */
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

/*
 * A process that opened a target QP may modify it: the creator's handle moved
 * it to RTR, the other one moves it to RTS.
 */
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
	/* closing one of the handles does not affect the QP */
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

/* ibv_open_qp(3): a QP is destroyed with its last handle. */
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
	Suite *s = suite("xrc_rules");

	add_loop(s, states, 2);
	add(s, domain_rules);
	add(s, domain_keeps_its_file);
	add(s, foreign_domain_and_qp_types);
	add(s, domain_across_processes);
	add(s, max_domains);
	add(s, busy_domain);
	add(s, target_with_a_pd);
	add(s, create_errors);
	add(s, open_qp_errors);
	add(s, opened_qp);
	add(s, opened_qp_outlives_its_creator);
	return run(s);
}
