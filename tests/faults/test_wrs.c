// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fault injection: WRs that complete with an error, as seen by both ends */
#define _GNU_SOURCE
#include "faults.h"
#include "qp/xrc.h"

static struct duo d;

static void open_duo(const char *rules, enum where where)
{
	struct opts o = default_opts();

	fault(rules);
	duo_open(&d, where, MEM_HEAP, MEM_HEAP, &o);
}

/*
 * The N-th matching WR fails: it is not executed, later WRs are flushed, and
 * the peer stays in RTS.
 */
START_TEST(only_nth_wr_fails)
{
	open_duo("wr:op=RDMA_WRITE:nth=3:RETRY_EXC_ERR", _i);
	node_fill(&d.a, 0, 64, 1);
	b_fill(&d, 0, 64, 2);
	/* a READ is not counted */
	ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 1024, 8, 0, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 64, 0, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 0, 64, 128, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_READ);
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	expect_ok(d.a.scq, 3, IBV_WC_RDMA_WRITE);
	b_fill(&d, 256, 64, 3);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 4, 0, 64, 256, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 5, 0, 64, 256, 0));
	ck_ok(post_recv(&d.a, 6, 0, 8));
	expect(d.a.scq, 4, IBV_WC_RETRY_EXC_ERR);
	expect(d.a.scq, 5, IBV_WC_WR_FLUSH_ERR);
	expect(d.a.rcq, 6, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
	/* WRs 4 and 5 had no effect at b */
	ck_assert(b_has(&d, 0, 64, 1));
	ck_assert(b_has(&d, 256, 64, 3));
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	b_expect_no_async(&d);
	duo_renew(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 7, 0, 64, 256, 0));
	expect_ok(d.a.scq, 7, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

#define UNHEARD 0, IBV_QPS_RTS

/*
 * Status of the WR, status of b's receive (0: none completes), state of b's
 * QP, and event at b
 */
static const struct {
	const char *rule;
	enum ibv_wr_opcode op;
	enum ibv_wc_status status, receive;
	enum ibv_qp_state state;
	int event; /* -1: none */
} ends[] = {
	{ "wr:LOC_LEN_ERR", IBV_WR_SEND, IBV_WC_LOC_LEN_ERR, UNHEARD, -1 },
	{ "wr:LOC_QP_OP_ERR", IBV_WR_SEND, IBV_WC_LOC_QP_OP_ERR, UNHEARD, -1 },
	{ "wr:LOC_PROT_ERR", IBV_WR_SEND, IBV_WC_LOC_PROT_ERR, UNHEARD, -1 },
	{ "wr:WR_FLUSH_ERR", IBV_WR_SEND, IBV_WC_WR_FLUSH_ERR, UNHEARD, -1 },
	{ "wr:FATAL_ERR", IBV_WR_SEND, IBV_WC_FATAL_ERR, UNHEARD, -1 },
	{ "wr:GENERAL_ERR", IBV_WR_SEND, IBV_WC_GENERAL_ERR, UNHEARD, -1 },
	{ "wr:BAD_RESP_ERR", IBV_WR_RDMA_READ, IBV_WC_BAD_RESP_ERR, UNHEARD,
	  -1 },
	{ "wr:RETRY_EXC_ERR", IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR, UNHEARD, -1 },
	{ "wr:RNR_RETRY_EXC_ERR", IBV_WR_SEND, IBV_WC_RNR_RETRY_EXC_ERR,
	  UNHEARD, -1 },
	{ "wr:REM_INV_REQ_ERR", IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR,
	  IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, IBV_EVENT_QP_REQ_ERR },
	{ "wr:REM_OP_ERR", IBV_WR_SEND, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR,
	  IBV_QPS_ERR, -1 },
	{ "wr:REM_ACCESS_ERR", IBV_WR_RDMA_WRITE_WITH_IMM,
	  IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR, IBV_QPS_ERR,
	  IBV_EVENT_QP_ACCESS_ERR },
	{ "wr:REM_ACCESS_ERR", IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR,
	  IBV_WC_WR_FLUSH_ERR, IBV_QPS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ "wr:REM_INV_REQ_ERR", IBV_WR_RDMA_READ, IBV_WC_REM_INV_REQ_ERR,
	  IBV_WC_WR_FLUSH_ERR, IBV_QPS_ERR, IBV_EVENT_QP_REQ_ERR },
};
#define COUNT(of) (int)(sizeof(of) / sizeof(*(of)))

/*
 * Each completion status has the effects on both ends that a real error with
 * that status has.
 */
START_TEST(effects_at_both_ends)
{
	struct ibv_wc wc;

	open_duo(ends[_i / 2].rule, _i % 2 ? TWO_PROCESSES : SAME_CONTEXT);
	b_recv(&d, 10, 0, 64);
	b_fill(&d, 0, 64, 2);
	ck_ok(post(&d, ends[_i / 2].op, 1, 1024, 64, 0, 0));
	ck_ok(post(&d, IBV_WR_SEND, 2, 1024, 64, 0, 0));
	expect(d.a.scq, 1, ends[_i / 2].status);
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
	if (ends[_i / 2].event >= 0 && _i % 2)
		b_expect_async(&d, ends[_i / 2].event);
	if (ends[_i / 2].receive) {
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.wr_id, 10);
		ck_assert_int_eq(wc.status, ends[_i / 2].receive);
	}
	ck_assert_int_eq(b_state(&d), ends[_i / 2].state);
	ck_assert(b_has(&d, 0, 64, 2));
	if (ends[_i / 2].event >= 0 && !(_i % 2))
		b_expect_async(&d, ends[_i / 2].event);
	duo_close(&d);
}
END_TEST

/*
 * Under the adversary the WRs that were posted earlier are still outstanding.
 * They complete successfully.  Only then does the faulty WR fail, and WRs
 * posted after it are flushed.
 */
START_TEST(earlier_wrs_complete_first)
{
	const bool remote = _i % 2;
	char seed[16];
	int i;

	snprintf(seed, sizeof(seed), "%d", _i + 1);
	ck_ok(setenv("URXE_ADVERSARY", seed, 1));
	open_duo(remote ? "wr:op=SEND:REM_OP_ERR" : "wr:op=SEND:LOC_PROT_ERR",
		 _i % 3 ? TWO_PROCESSES : SAME_CONTEXT);
	node_fill(&d.a, 0, 4096, 1);
	b_fill(&d, 8192, 512, 2);
	b_fill(&d, 16384, 64, 3);
	b_recv(&d, 10, 20000, 64);
	for (i = 0; i < 4; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 4096, 0, 0));
	ck_ok(post(&d, IBV_WR_RDMA_READ, 4, 8192, 512, 8192, 0));
	ck_ok(post(&d, IBV_WR_SEND, 5, 0, 64, 0, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 6, 0, 64, 16384, 0));
	for (i = 0; i < 4; i++)
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
	expect_ok(d.a.scq, 4, IBV_WC_RDMA_READ);
	expect(d.a.scq, 5, remote ? IBV_WC_REM_OP_ERR : IBV_WC_LOC_PROT_ERR);
	expect(d.a.scq, 6, IBV_WC_WR_FLUSH_ERR);
	if (remote)
		ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(b_state(&d), remote ? IBV_QPS_ERR : IBV_QPS_RTS);
	ck_assert(b_has(&d, 0, 4096, 1));
	ck_assert(node_has(&d.a, 8192, 512, 2));
	ck_assert(b_has(&d, 16384, 64, 3));
	duo_close(&d);
}
END_TEST

/* op= and wr_id= restrict a rule to matching WRs. */
START_TEST(rule_by_wr_id_and_op)
{
	open_duo("wr:op=SEND,RDMA_READ:wr_id=0x22:LOC_PROT_ERR", SAME_CONTEXT);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 0x22, 0, 8, 0, 0));
	expect_ok(d.a.scq, 0x22, IBV_WC_RDMA_WRITE);
	ck_ok(post(&d, IBV_WR_RDMA_READ, 0x21, 0, 8, 0, 0));
	expect_ok(d.a.scq, 0x21, IBV_WC_RDMA_READ);
	/* an unsignaled WR that fails has a completion */
	ck_ok(post_unsignaled(&d, IBV_WR_RDMA_READ, 0x22, 0, 8, 0, 0));
	expect(d.a.scq, 0x22, IBV_WC_LOC_PROT_ERR);
	duo_close(&d);
}
END_TEST

/*
 * A SEND that waits for a receive counts once, however often it is retried.
 */
START_TEST(retry_not_counted)
{
	open_duo("wr:nth=2:LOC_PROT_ERR", _i);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 64, 0, 0));
	expect_none(d.a.scq, QUIET_MS);
	b_recv(&d, 10, 0, 64);
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 64, 0, 0));
	expect(d.a.scq, 2, IBV_WC_LOC_PROT_ERR);
	duo_close(&d);
}
END_TEST

/* An error that consumes a receive occurs only when a receive is posted. */
START_TEST(refusal_waits_for_receive)
{
	open_duo("wr:nth=1:REM_OP_ERR", _i);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 64, 0, 0));
	expect_none(d.a.scq, QUIET_MS);
	b_recv(&d, 10, 0, 64);
	expect(d.a.scq, 1, IBV_WC_REM_OP_ERR);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_LOC_PROT_ERR);
	duo_close(&d);
}
END_TEST

/* The same if other WRs are outstanding when the SEND is started. */
START_TEST(late_refusal_waits_for_receive)
{
	char seed[32];
	int i;

	snprintf(seed, sizeof(seed), "%d,none,complete=100%%", _i + 1);
	ck_ok(setenv("URXE_ADVERSARY", seed, 1));
	open_duo("wr:op=SEND:REM_OP_ERR", _i % 2);
	for (i = 0; i < 4; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 64, 0, 0));
	ck_ok(post(&d, IBV_WR_SEND, 4, 0, 64, 0, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 5, 0, 64, 0, 0));
	for (i = 0; i < 4; i++)
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
	expect_none(d.a.scq, QUIET_MS);
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	b_recv(&d, 10, 0, 64);
	expect(d.a.scq, 4, IBV_WC_REM_OP_ERR);
	expect(d.a.scq, 5, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	duo_close(&d);
}
END_TEST

/*
 * A WR counts when it is started.  A WR that waits in SQD or is flushed in
 * ERR does not count.
 */
START_TEST(wr_counts_when_started)
{
	open_duo("wr:nth=2:LOC_PROT_ERR;wr:nth=3:LOC_LEN_ERR", _i);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_ok(qp_to(d.a.qp, IBV_QPS_SQD));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 64, 0, 0));
	expect_none(d.a.scq, QUIET_MS);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	expect(d.a.scq, 2, IBV_WC_LOC_PROT_ERR);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 0, 64, 0, 0));
	expect(d.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	duo_renew(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 4, 0, 64, 0, 0));
	expect(d.a.scq, 4, IBV_WC_LOC_LEN_ERR);
	/* the same QP after RESET */
	ck_ok(qp_to(d.a.qp, IBV_QPS_RESET));
	node_connect(&d.a, &d.at_b);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 5, 0, 64, 0, 0));
	expect_ok(d.a.scq, 5, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/* An XRC target QP in b, its domain, and an SRQ with two receives */
struct target {
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
};

/* What a needs to connect to the target */
struct target_addr {
	struct addr at;
	uint32_t srqn;
};

static void b_open_target(struct node *b, void *arg)
{
	struct target *t = calloc(1, sizeof(*t));
	struct target_addr *ta = arg;
	int fd = new_file();

	ck_nonnull(t);
	t->xrcd = open_xrcd(b->ctx, fd, O_CREAT);
	ck_nonnull(t->xrcd);
	close(fd);
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = make_target(b, t->xrcd);
	t->srq = make_xsrq(b, t->xrcd, 4, 1);
	ck_ok(post_srq(t->srq, b, 10, 0, 64));
	ck_ok(post_srq(t->srq, b, 11, 0, 64));
	b->user = t;
	ta->at = node_addr(b);
	ta->srqn = srqn(t->srq);
}

static void b_connect_target(struct node *b, void *arg)
{
	type_connect(b->qp, &b->o, arg);
}

static void b_close_target(struct node *b, void *arg)
{
	struct target *t = b->user;

	(void)arg;
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = NULL;
	ck_ok(ibv_destroy_srq(t->srq));
	ck_ok(ibv_close_xrcd(t->xrcd));
	free(t);
}

static void b_is_quiet(struct node *b, void *arg)
{
	(void)arg;
	expect_none(b->rcq, QUIET_MS);
}

static uint32_t open_target_of(enum where where)
{
	const struct opts o = default_opts();
	struct target_addr ta = { 0 };

	duo_open_unconnected(&d, where, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, b_open_target, &ta, sizeof(ta));
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = make_qp(&d.a, IBV_QPT_XRC_SEND, NULL);
	d.at_a = node_addr(&d.a);
	d.at_b = ta.at;
	type_connect(d.a.qp, &o, &d.at_b);
	on_b(&d, b_connect_target, &d.at_a, sizeof(d.at_a));
	return ta.srqn;
}

/*
 * Fate of the second WR: its status, status of a receive (0: none completes),
 * state of the target QP, and event at b (-1: none)
 */
static const struct {
	const char *rule;
	enum ibv_wr_opcode op;
	enum ibv_wc_status status, receive;
	enum ibv_qp_state state;
	int event;
} xrc_ends[] = {
	{ "wr:type=XRC_SEND:nth=2:RETRY_EXC_ERR", IBV_WR_SEND,
	  IBV_WC_RETRY_EXC_ERR, UNHEARD, -1 },
	{ "wr:type=XRC_SEND:nth=2:LOC_PROT_ERR", IBV_WR_RDMA_WRITE,
	  IBV_WC_LOC_PROT_ERR, UNHEARD, -1 },
	{ "wr:nth=2:REM_OP_ERR", IBV_WR_SEND, IBV_WC_REM_OP_ERR,
	  IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, -1 },
	{ "wr:nth=2:REM_INV_REQ_ERR", IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR,
	  IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, IBV_EVENT_QP_REQ_ERR },
	{ "wr:nth=2:REM_ACCESS_ERR", IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR,
	  0, IBV_QPS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ "wr:nth=2:REM_ACCESS_ERR", IBV_WR_RDMA_WRITE_WITH_IMM,
	  IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR, IBV_QPS_ERR,
	  IBV_EVENT_QP_ACCESS_ERR },
	{ "wr:type=RC:nth=2:REM_ACCESS_ERR", IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS,
	  UNHEARD, -1 },
};

/*
 * The same for XRC: the WR fails, and the error is visible at the target QP.
 */
START_TEST(xrc_wr_fails)
{
	const enum ibv_wr_opcode op = xrc_ends[_i / 2].op;
	const enum ibv_wc_status status = xrc_ends[_i / 2].status;
	const bool receives = op != IBV_WR_RDMA_WRITE;
	struct ibv_wc wc;
	uint32_t number;

	fault(xrc_ends[_i / 2].rule);
	number = open_target_of(_i % 2 ? TWO_PROCESSES : SAME_CONTEXT);
	post_x(&d, op, 1, 64, 0, number);
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	if (receives)
		ck_assert_int_eq(b_wait_recv(&d).wr_id, 10);
	b_fill(&d, 0, 64, 2);
	node_fill(&d.a, 0, 64, status ? 1 : 2);
	post_x(&d, op, 2, 64, 0, number);
	expect(d.a.scq, 2, status);
	ck_assert_int_eq(qp_state(d.a.qp), status ? IBV_QPS_ERR : IBV_QPS_RTS);
	ck_assert_int_eq(b_state(&d), xrc_ends[_i / 2].state);
	ck_assert(b_has(&d, 0, 64, 2));
	if (xrc_ends[_i / 2].receive) {
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.wr_id, 11);
		ck_assert_int_eq(wc.status, xrc_ends[_i / 2].receive);
	}
	if (xrc_ends[_i / 2].event >= 0)
		b_expect_async(&d, xrc_ends[_i / 2].event);
	on_b(&d, b_is_quiet, NULL, 0); /* an SRQ is not flushed */
	on_b(&d, b_close_target, NULL, 0);
	duo_close(&d);
}
END_TEST

/*
 * A completion error on the send queue of a UD QP moves it to SQE (IB
 * 10.3.1).
 */
START_TEST(ud_receives_in_sqe)
{
	struct opts o = default_opts();
	struct ibv_ah *ah;

	fault("wr:type=UD:nth=2:LOC_QP_OP_ERR");
	duo_open_unconnected(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UD);
	ah = make_ah(&d.a, &d.at_b.gid, 1);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, d.at_b.qpn, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(post_ud(&d.a, 2, 0, 8, ah, d.at_b.qpn, QKEY));
	expect(d.a.scq, 2, IBV_WC_LOC_QP_OP_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_SQE);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

/*
 * A completion error on the send queue of a UC QP moves it to SQE (IB
 * 10.3.1).  Receives stay posted, and the QP can return to RTS.
 */
START_TEST(uc_receives_in_sqe)
{
	open_duo("wr:type=UC:op=SEND:nth=2:LOC_PROT_ERR", _i);
	turn(&d, IBV_QPT_UC);
	b_recv(&d, 10, 0, 64);
	ck_ok(post_recv(&d.a, 11, 0, 64));
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 64, 0, 0));
	ck_ok(post(&d, IBV_WR_SEND, 3, 0, 64, 0, 0));
	expect(d.a.scq, 2, IBV_WC_LOC_PROT_ERR);
	expect(d.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_SQE);
	expect_none(d.a.rcq, QUIET_MS);
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	b_recv(&d, 12, 0, 64);
	ck_ok(post(&d, IBV_WR_SEND, 4, 0, 64, 0, 0));
	expect_ok(d.a.scq, 4, IBV_WC_SEND);
	duo_close(&d);
}
END_TEST

/*
 * A bind completes with IBV_WC_MW_BIND_ERR.  Other WRs do not match this
 * status.
 */
START_TEST(bind_fails)
{
	struct ibv_mw_bind bind = { .wr_id = 1,
				    .send_flags = IBV_SEND_SIGNALED };
	struct opts o = default_opts();
	struct ibv_mw *mw;

	o.mr_access |= IBV_ACCESS_MW_BIND;
	fault("wr:nth=1:MW_BIND_ERR");
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 7, 0, 8, 0, 0)); /* no match */
	expect_ok(d.a.scq, 7, IBV_WC_RDMA_WRITE);
	mw = ibv_alloc_mw(d.a.pd, IBV_MW_TYPE_1);
	ck_nonnull(mw);
	bind.bind_info.mr = d.a.mr;
	bind.bind_info.addr = d.a.base;
	bind.bind_info.length = 64;
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	ck_ok(ibv_bind_mw(d.a.qp, mw, &bind));
	expect(d.a.scq, 1, IBV_WC_MW_BIND_ERR);
	ck_ok(ibv_dealloc_mw(mw));
	duo_close(&d);
}
END_TEST

/* A local invalidate completes with IBV_WC_MW_BIND_ERR. */
START_TEST(local_inv_fails)
{
	struct ibv_send_wr wr = { .wr_id = 2, .opcode = IBV_WR_LOCAL_INV };

	open_duo("wr:MW_BIND_ERR", SAME_CONTEXT);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	wr.invalidate_rkey = d.a.mr->rkey;
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 2, IBV_WC_MW_BIND_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
	duo_close(&d);
}
END_TEST

/* WRs that no rule matches complete as without rules. */
START_TEST(unmatched_wrs_succeed)
{
	uint32_t i;

	open_duo("wr:nth=1000000:LOC_PROT_ERR", _i);
	for (i = 0; i < 200; i++) {
		b_recv(&d, i, 4096, 512);
		node_fill(&d.a, 0, 512, i);
		ck_ok(post(&d, IBV_WR_SEND, i, 0, 512, 0, 0));
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 512, 8192, 0));
		ck_ok(post(&d, IBV_WR_RDMA_READ, i, 1024, 512, 8192, 0));
		expect_ok(d.a.scq, i, IBV_WC_SEND);
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
		expect_ok(d.a.scq, i, IBV_WC_RDMA_READ);
		ck_assert_int_eq(b_wait_recv(&d).wr_id, i);
		ck_assert(b_has(&d, 4096, 512, i));
		ck_assert(node_has(&d.a, 1024, 512, i));
	}
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("faults wrs");

	add_loop(s, only_nth_wr_fails, WHERE_COUNT);
	add_loop(s, effects_at_both_ends, 2 * COUNT(ends));
	add_loop(s, earlier_wrs_complete_first, 24);
	add(s, rule_by_wr_id_and_op);
	add_loop(s, wr_counts_when_started, WHERE_COUNT);
	add_loop(s, retry_not_counted, WHERE_COUNT);
	add_loop(s, refusal_waits_for_receive, WHERE_COUNT);
	add_loop(s, late_refusal_waits_for_receive, 4);
	add_loop(s, xrc_wr_fails, 2 * COUNT(xrc_ends));
	add(s, ud_receives_in_sqe);
	add_loop(s, uc_receives_in_sqe, WHERE_COUNT);
	add(s, bind_fails);
	add(s, local_inv_fails);
	add_loop(s, unmatched_wrs_succeed, WHERE_COUNT);
	return run(s);
}
