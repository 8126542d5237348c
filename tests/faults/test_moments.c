// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fault injection: what a rule counts, and which objects it affects */
#include <fcntl.h>
#include <pthread.h>

#include "faults.h"

static struct duo d;
static struct node n;

static void open_node(const char *rules)
{
	struct opts o = default_opts();

	fault(rules);
	node_open(&n, NULL, MEM_HEAP, &o);
	qp_to_init(n.qp, &n.o);
}

static void open_duo(const char *rules, enum where where)
{
	struct opts o = default_opts();

	fault(rules);
	duo_open(&d, where, MEM_HEAP, MEM_HEAP, &o);
}

static void expect_event(struct ibv_context *ctx, enum ibv_event_type type)
{
	ck_assert_int_eq(wait_async(ctx, true).event_type, type);
}

/* A receive that is posted to an SRQ does not count for a QP or its CQ. */
START_TEST(srq_receive_counts_for_srq_only)
{
	struct ibv_srq *srq;

	open_node("qp:at=recv:nth=1:QP_FATAL\ncq:at=recv:nth=2:CQ_ERR\n"
		  "port:at=recv:nth=3:LID_CHANGE");
	srq = make_srq(&n, 8, 1);
	ck_ok(post_srq(srq, &n, 1, 0, 8));
	ck_ok(post_srq(srq, &n, 2, 0, 8));
	expect_quiet(n.ctx);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_INIT);
	ck_ok(post_recv(&n, 3, 0, 8));
	expect_async(n.ctx, IBV_EVENT_QP_FATAL, n.qp);
	expect_event(n.ctx, IBV_EVENT_LID_CHANGE); /* of the port */
	ck_ok(post_recv(&n, 4, 0, 8));
	expect_async(n.ctx, IBV_EVENT_CQ_ERR, n.rcq);
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/* A receive that is posted to a QP does not count for an SRQ. */
START_TEST(qp_receive_counts_for_qp_only)
{
	struct ibv_srq *srq, *other;

	open_node("srq:nth=1:SRQ_ERR");
	srq = make_srq(&n, 8, 1);
	other = make_srq(&n, 8, 1);
	ck_ok(post_recv(&n, 1, 0, 8));
	expect_quiet(n.ctx);
	ck_ok(post_srq(srq, &n, 2, 0, 8));
	expect_async(n.ctx, IBV_EVENT_SRQ_ERR, srq);
	expect_quiet(n.ctx);
	ck_ok(ibv_destroy_srq(srq));
	ck_ok(ibv_destroy_srq(other));
	node_close(&n);
}
END_TEST

#define MANY 20

static unsigned int poll_all(void)
{
	struct ibv_wc wc[MANY];

	return ibv_poll_cq(d.a.scq, MANY, wc);
}

/*
 * Each WR of a list counts, each receive of a list, and each CQE that one
 * call polls.
 */
START_TEST(each_wr_of_a_call_counts)
{
	static const char *const at[] = { "post", "recv", "completion" };
	struct ibv_send_wr wr[MANY], *bad;
	struct ibv_recv_wr rwr[MANY], *rbad;
	unsigned int i, polled = 0;
	char rule[64];

	snprintf(rule, sizeof(rule), "qp:at=%s:PATH_MIG", at[_i]);
	open_duo(rule, SAME_CONTEXT);
	memset(wr, 0, sizeof(wr));
	memset(rwr, 0, sizeof(rwr));
	for (i = 0; i < MANY; i++) {
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].next = i + 1 < MANY ? &wr[i + 1] : NULL;
		rwr[i].next = i + 1 < MANY ? &rwr[i + 1] : NULL;
	}
	if (_i == 1)
		ck_ok(ibv_post_recv(d.a.qp, rwr, &rbad));
	else
		ck_ok(ibv_post_send(d.a.qp, wr, &bad));
	while (_i == 2 && polled < MANY)
		polled += poll_all();
	for (i = 0; i < MANY; i++)
		expect_async(d.a.ctx, IBV_EVENT_PATH_MIG, d.a.qp);
	expect_quiet(d.a.ctx);
	duo_close(&d);
}
END_TEST

/* Create a QP for the ibv_wr_* calls and a CQ for ibv_start_poll. */
static void extended(struct ibv_cq_ex **cq, struct ibv_qp_ex **ex)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 64 };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_READ,
	};
	struct addr self;

	*cq = ibv_create_cq_ex(n.ctx, &cq_attr);
	ck_nonnull(*cq);
	ck_ok(ibv_destroy_qp(n.qp));
	attr.pd = n.pd;
	attr.send_cq = ibv_cq_ex_to_cq(*cq);
	attr.recv_cq = attr.send_cq;
	attr.cap = n.o.cap;
	n.qp = ibv_create_qp_ex(n.ctx, &attr);
	ck_nonnull(n.qp);
	self = node_addr(&n);
	node_connect(&n, &self);
	*ex = ibv_qp_to_qp_ex(n.qp);
}

static void build(struct ibv_qp_ex *ex, unsigned int many)
{
	unsigned int i;

	ibv_wr_start(ex);
	for (i = 0; i < many; i++) {
		ex->wr_id = i;
		ex->wr_flags = IBV_SEND_SIGNALED;
		if (i % 2)
			ibv_wr_rdma_read(ex, n.mr->rkey, n.base);
		else
			ibv_wr_rdma_write(ex, n.mr->rkey, n.base);
		ibv_wr_set_sge(ex, n.mr->lkey, n.base + 64, 8);
	}
	ck_ok(ibv_wr_complete(ex));
}

/* Poll a batch.  Store the status of each CQE, and return their number. */
static unsigned int iterate(struct ibv_cq_ex *cq, enum ibv_wc_status *status)
{
	struct ibv_poll_cq_attr attr = { 0 };
	unsigned int got = 0;

	if (ibv_start_poll(cq, &attr))
		return 0;
	do
		status[got++] = cq->status;
	while (!ibv_next_poll(cq));
	ibv_end_poll(cq);
	return got;
}

static void extended_close(struct ibv_cq_ex *cq)
{
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = NULL;
	ck_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	node_close(&n);
}

/* WRs of the ibv_wr_* calls and CQEs of ibv_next_poll count one by one. */
START_TEST(builder_wrs_and_next_poll_count)
{
	static const struct {
		const char *rule;
		unsigned int events;
	} cases[] = {
		{ "qp:at=post:PATH_MIG", MANY },
		{ "qp:at=post:op=RDMA_READ:PATH_MIG", MANY / 2 },
		{ "qp:at=post:wr_id=7:PATH_MIG", 1 },
		{ "qp:PATH_MIG", MANY },
		{ "qp:wr_id=3:PATH_MIG", 1 },
	};
	enum ibv_wc_status status[MANY];
	struct ibv_qp_ex *ex;
	struct ibv_cq_ex *cq;
	unsigned int i;

	open_node(cases[_i].rule);
	extended(&cq, &ex);
	build(ex, MANY);
	for (i = 0; i < MANY;)
		i += iterate(cq, status);
	for (i = 0; i < cases[_i].events; i++)
		expect_async(n.ctx, IBV_EVENT_PATH_MIG, n.qp);
	expect_quiet(n.ctx);
	extended_close(cq);
}
END_TEST

/*
 * A rule can break a WR in the middle of a batch that the ibv_wr_* calls
 * built, or strike in the middle of a batch of ibv_next_poll.
 */
START_TEST(rule_strikes_within_batch)
{
	enum ibv_wc_status status[MANY];
	struct ibv_qp_ex *ex;
	struct ibv_cq_ex *cq;
	unsigned int i, got = 0;

	open_node(_i ? "qp:nth=3:QP_FATAL" : "wr:nth=4:LOC_PROT_ERR");
	extended(&cq, &ex);
	ck_ok(post_recv(&n, 9, 0, 8));
	build(ex, 6);
	while (got < 7)
		got += iterate(cq, status + got);
	for (i = 0; i < 7; i++)
		ck_assert_int_eq(status[i], _i	   ? (i < 6 ? IBV_WC_SUCCESS :
							      IBV_WC_WR_FLUSH_ERR) :
					    i < 3  ? IBV_WC_SUCCESS :
					    i == 3 ? IBV_WC_LOC_PROT_ERR :
						     IBV_WC_WR_FLUSH_ERR);
	if (_i)
		expect_async(n.ctx, IBV_EVENT_QP_FATAL, n.qp);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_ERR);
	extended_close(cq);
}
END_TEST

/* A bind of a memory window by ibv_bind_mw counts as a posted WR. */
START_TEST(bind_mw_counts_as_post)
{
	struct ibv_mw_bind bind = { .wr_id = 1,
				    .send_flags = IBV_SEND_SIGNALED };
	struct opts o = default_opts();
	struct ibv_mw *mw;
	int i;

	o.mr_access |= IBV_ACCESS_MW_BIND;
	fault("qp:at=post:op=BIND_MW:nth=2:PATH_MIG");
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	mw = ibv_alloc_mw(d.a.pd, IBV_MW_TYPE_1);
	ck_nonnull(mw);
	bind.bind_info.mr = d.a.mr;
	bind.bind_info.addr = d.a.base;
	bind.bind_info.length = 64;
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	for (i = 0; i < 2; i++) {
		expect_quiet(d.a.ctx);
		ck_ok(ibv_bind_mw(d.a.qp, mw, &bind));
		expect_ok(d.a.scq, 1, IBV_WC_BIND_MW);
	}
	expect_async(d.a.ctx, IBV_EVENT_PATH_MIG, d.a.qp);
	expect_quiet(d.a.ctx);
	ck_ok(ibv_dealloc_mw(mw));
	duo_close(&d);
}
END_TEST

/*
 * All contexts of a process share the device and its port: each gets the
 * event.
 */
START_TEST(event_in_each_context)
{
	struct ibv_port_attr attr;

	open_duo("port:nth=1:LID_CHANGE;device:nth=2:DEVICE_FATAL",
		 SAME_PROCESS);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	expect_event(d.a.ctx, IBV_EVENT_LID_CHANGE);
	expect_event(d.b.ctx, IBV_EVENT_LID_CHANGE);
	ck_ok(post_recv(&d.b, 9, 0, 8));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	expect_event(d.a.ctx, IBV_EVENT_DEVICE_FATAL);
	expect_event(d.b.ctx, IBV_EVENT_DEVICE_FATAL);
	expect(d.b.rcq, 9, IBV_WC_WR_FLUSH_ERR);
	/* WRs are flushed, and verbs calls fail */
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 0, 8, 0, 0));
	expect(d.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(ibv_query_port(d.b.ctx, 1, &attr), EIO);
	ck_assert_int_eq(qp_to(d.b.qp, IBV_QPS_RESET), EIO);
	expect_quiet(d.a.ctx);
	expect_quiet(d.b.ctx);
	duo_close(&d);
}
END_TEST

/* A second, shorter DOWN does not shorten the first one. */
START_TEST(shorter_second_port_down)
{
	double before;

	open_duo("port:at=post:nth=1:DOWN=200;port:at=post:nth=1:DOWN=20",
		 SAME_CONTEXT);
	before = now_ms();
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect_event(d.a.ctx, IBV_EVENT_PORT_ERR);
	expect_event(d.a.ctx, IBV_EVENT_PORT_ACTIVE);
	ck_assert(now_ms() - before >= 199);
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

#define THREADS 4
#define CALLS 500

static void *alloc_many(void *arg)
{
	unsigned long failed = 0;
	struct ibv_pd *pd;
	int i;

	for (i = 0; i < CALLS; i++) {
		pd = ibv_alloc_pd(arg);
		if (pd)
			ck_ok(ibv_dealloc_pd(pd));
		failed += !pd;
	}
	return (void *)failed;
}

/* nth, every and times apply to all threads of the process together. */
START_TEST(counts_are_shared_by_threads)
{
	static const struct {
		const char *rule;
		unsigned long failed;
	} cases[] = {
		{ "ibv_alloc_pd:nth=700:ENOMEM", 1 },
		{ "ibv_alloc_pd:nth=700:times=200:ENOMEM", 200 },
		{ "ibv_alloc_pd:every=7:ENOMEM", THREADS * CALLS / 7 },
		{ "ibv_alloc_pd:p=0.5:times=300:ENOMEM", 300 },
	};
	struct ibv_context *ctx;
	unsigned long sum = 0;
	pthread_t t[THREADS];
	void *failed;
	int i;

	fault(cases[_i].rule);
	ctx = open_device();
	for (i = 0; i < THREADS; i++)
		ck_ok(pthread_create(&t[i], NULL, alloc_many, ctx));
	for (i = 0; i < THREADS; i++) {
		ck_ok(pthread_join(t[i], &failed));
		sum += (unsigned long)failed;
	}
	ck_assert_uint_eq(sum, cases[_i].failed);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

#define ROUNDS 40
#define BURST 8

/*
 * Use a QP that is connected to itself and may break at any time.  Each
 * posted WR completes.
 */
static void qp_live(struct ibv_context *ctx)
{
	struct opts o = default_opts();
	unsigned int posted = 0, done = 0;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	const double limit = now_ms() + WAIT_MS;
	struct ibv_wc wc[BURST];
	struct addr self;
	struct node t;
	int i, got;

	node_open(&t, ctx, MEM_HEAP, &o);
	self = node_addr(&t);
	node_connect(&t, &self);
	for (i = 0; i < BURST; i++) {
		posted += !post_wr(t.qp, &wr);
		got = ibv_poll_cq(t.scq, BURST, wc);
		ck_assert_int_ge(got, 0);
		done += (unsigned int)got;
	}
	while (done < posted) {
		got = ibv_poll_cq(t.scq, BURST, wc);
		ck_assert_int_ge(got, 0);
		done += (unsigned int)got;
		ck_assert(now_ms() < limit);
	}
	node_close(&t);
}

static _Atomic int living;

static void *live(void *ctx)
{
	int i;

	for (i = 0; i < ROUNDS; i++)
		qp_live(ctx);
	living--;
	return NULL;
}

/*
 * Threads create and destroy QPs.  Rules break these QPs and make the port go
 * down.  The reader of events does not block: an event disappears if its QP
 * is destroyed between poll(2) and ibv_get_async_event.
 */
START_TEST(faults_while_threads_destroy_qps)
{
	struct ibv_async_event event;
	struct ibv_context *ctx;
	pthread_t t[THREADS];
	int i;

	if (_i)
		ck_ok(setenv("URXE_ADVERSARY", "3", 1));
	fault("qp:at=post:p=0.02:QP_FATAL;wr:p=0.02:REM_OP_ERR;"
	      "qp:p=0.02:QP_ACCESS_ERR;port:at=post:p=0.005:DOWN=3;"
	      "ibv_post_send:p=0.02:ENOMEM;wr:p=0.02:LOC_PROT_ERR;"
	      "qp:ms=5:PATH_MIG;qp:ms=15:COMM_EST;port:ms=10:LID_CHANGE;"
	      "process:p=0.01:SLEEP=1");
	ctx = open_device();
	ck_ok(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK));
	living = THREADS;
	for (i = 0; i < THREADS; i++)
		ck_ok(pthread_create(&t[i], NULL, live, ctx));
	while (living)
		if (fd_readable(ctx->async_fd, 1) &&
		    !ibv_get_async_event(ctx, &event))
			ibv_ack_async_event(&event);
	for (i = 0; i < THREADS; i++)
		ck_ok(pthread_join(t[i], NULL));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

int main(void)
{
	Suite *s = suite("faults moments");

	add(s, srq_receive_counts_for_srq_only);
	add(s, qp_receive_counts_for_qp_only);
	add_loop(s, each_wr_of_a_call_counts, 3);
	add_loop(s, builder_wrs_and_next_poll_count, 5);
	add_loop(s, rule_strikes_within_batch, 2);
	add(s, bind_mw_counts_as_post);
	add(s, event_in_each_context);
	add(s, shorter_second_port_down);
	add_loop(s, counts_are_shared_by_threads, 4);
	add_loop(s, faults_while_threads_destroy_qps, 2);
	return run(s);
}
