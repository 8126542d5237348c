/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Instruction count of data path operations: a QP that is connected to itself
 * repeats each operation N times.  instructions.sh runs this program under
 * callgrind, which counts the instructions inside measured().
 *
 *   urxe-instructions OPERATION N...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define SINK BENCH_BIG

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "urxe-instructions: %s failed\n", what);
	exit(1);
}

static void reap(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	check(ibv_poll_cq(cq, 1, &wc) != 1 || wc.status, "ibv_poll_cq");
}

static struct ibv_sge sge;

static void wr_init(struct end *e, struct ibv_send_wr *wr, enum buf_kind kind)
{
	memset(wr, 0, sizeof(*wr));
	sge.addr = e->me.addr[BUF_PRIVATE];
	sge.length = 8;
	sge.lkey = e->mr[BUF_PRIVATE]->lkey;
	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->send_flags = IBV_SEND_SIGNALED;
	wr->wr.rdma.remote_addr = e->me.addr[kind] + SINK;
	wr->wr.rdma.rkey = e->me.rkey[kind];
}

static void post_and_reap(struct end *e, uint32_t n, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	while (n--) {
		check(ibv_post_send(e->qp, wr, &bad), "ibv_post_send");
		reap(e->cq);
	}
}

static void write_one(struct end *e, uint32_t n, enum buf_kind kind)
{
	struct ibv_send_wr wr;

	wr_init(e, &wr, kind);
	post_and_reap(e, n, &wr);
}

static void write_private(struct end *e, uint32_t n)
{
	write_one(e, n, BUF_PRIVATE);
}

static void write_dm(struct end *e, uint32_t n)
{
	write_one(e, n, BUF_DM);
}

static void read_dm(struct end *e, uint32_t n)
{
	struct ibv_send_wr wr;

	wr_init(e, &wr, BUF_DM);
	wr.opcode = IBV_WR_RDMA_READ;
	post_and_reap(e, n, &wr);
}

static void fetch_add(struct end *e, uint32_t n, enum buf_kind kind)
{
	struct ibv_send_wr wr;

	wr_init(e, &wr, kind);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = e->me.addr[kind] + SINK;
	wr.wr.atomic.rkey = e->me.rkey[kind];
	wr.wr.atomic.compare_add = 1;
	post_and_reap(e, n, &wr);
}

static void fetch_add_private(struct end *e, uint32_t n)
{
	fetch_add(e, n, BUF_PRIVATE);
}

static void fetch_add_dm(struct end *e, uint32_t n)
{
	fetch_add(e, n, BUF_DM);
}

/* One operation is a list of WRs.  Only the last WR is signaled. */
static void write_list(struct end *e, uint32_t n)
{
	struct ibv_send_wr wr[BENCH_LIST], *bad;
	int i;

	for (i = 0; i < BENCH_LIST; i++) {
		wr_init(e, &wr[i], BUF_PRIVATE);
		wr[i].send_flags = 0;
		wr[i].next = &wr[i + 1];
	}
	wr[BENCH_LIST - 1].send_flags = IBV_SEND_SIGNALED;
	wr[BENCH_LIST - 1].next = NULL;
	while (n--) {
		check(ibv_post_send(e->qp, wr, &bad), "ibv_post_send");
		reap(e->cq);
	}
}

static void send_one(struct end *e, uint32_t n)
{
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr wr, *bad;

	wr_init(e, &wr, BUF_PRIVATE);
	wr.opcode = IBV_WR_SEND;
	while (n--) {
		check(ibv_post_recv(e->qp, &recv, &bad_recv), "ibv_post_recv");
		check(ibv_post_send(e->qp, &wr, &bad), "ibv_post_send");
		reap(e->recv_cq);
		reap(e->cq);
	}
}

static void poll_empty(struct end *e, uint32_t n)
{
	struct ibv_wc wc;

	while (n--)
		check(ibv_poll_cq(e->cq, 1, &wc), "ibv_poll_cq");
}

#define MANY 4000
static struct ibv_qp *qps[MANY];
static uint32_t qp_count;

/* Connect @qp to itself, with the attributes of e->qp. */
static void qp_connect(struct end *e, struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	check(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	attr.qp_state = IBV_QPS_INIT;
	check(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS),
	      "INIT");
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = qp->qp_num;
	check(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	      "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC),
	      "RTS");
}

static struct ibv_qp *qp_make(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;

	check(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	init.cap.max_send_wr = 16;
	init.cap.max_recv_wr = 16;
	qp = ibv_create_qp(e->pd, &init);
	check(!qp, "ibv_create_qp");
	qp_connect(e, qp);
	return qp;
}

/* Create a QP for the ibv_wr_* calls. */
static void extended(struct end *e)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->cq,
		.recv_cq = e->recv_cq,
		.cap = { 128, 128, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};

	qps[0] = ibv_create_qp_ex(e->pd->context, &init);
	check(!qps[0], "ibv_create_qp_ex");
	qp_count = 1;
	qp_connect(e, qps[0]);
}

/*
 * Post @n batches of @batch WRs each.  Only the last WR of a batch is
 * signaled.
 */
static void wr_batches(struct end *e, uint32_t n, uint32_t batch)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(qps[0]);
	uint32_t i;

	while (n--) {
		ibv_wr_start(qp);
		for (i = 1; i <= batch; i++) {
			qp->wr_flags = i == batch ? IBV_SEND_SIGNALED : 0;
			ibv_wr_rdma_write(qp, e->me.rkey[BUF_PRIVATE],
					  e->me.addr[BUF_PRIVATE] + SINK);
			ibv_wr_set_sge(qp, e->mr[BUF_PRIVATE]->lkey,
				       e->me.addr[BUF_PRIVATE], 8);
		}
		check(ibv_wr_complete(qp), "ibv_wr_complete");
		reap(e->cq);
	}
}

static void wr_write(struct end *e, uint32_t n)
{
	wr_batches(e, n, 1);
}

static void wr_list(struct end *e, uint32_t n)
{
	wr_batches(e, n, BENCH_LIST);
}

static void many_qps(struct end *e, uint32_t count)
{
	for (; qp_count < count; qp_count++)
		qps[qp_count] = qp_make(e);
}

static void few(struct end *e)
{
	many_qps(e, 16);
}

static void many(struct end *e)
{
	many_qps(e, MANY);
}

/* Replace the oldest QP by a new one, @n times. */
static void qp_renew(struct end *e, uint32_t n)
{
	static uint32_t oldest;

	for (; n; n--, oldest++) {
		struct ibv_qp **qp = &qps[oldest % qp_count];

		check(ibv_destroy_qp(*qp), "ibv_destroy_qp");
		*qp = qp_make(e);
	}
}

static const struct operation {
	const char *name;
	void (*run)(struct end *e, uint32_t n);
	void (*prepare)(struct end *e);
} operations[] = {
	{ "write-private", write_private, NULL },
	{ "write-dm", write_dm, NULL },
	{ "write-list", write_list, NULL },
	{ "wr-write", wr_write, extended },
	{ "wr-list", wr_list, extended },
	{ "read-dm", read_dm, NULL },
	{ "fetch-add", fetch_add_private, NULL },
	{ "fetch-add-dm", fetch_add_dm, NULL },
	{ "send", send_one, NULL },
	{ "poll-empty", poll_empty, NULL },
	{ "qp", qp_renew, few },
	{ "qp-of-4000", qp_renew, many },
};

void measured(void (*run)(struct end *e, uint32_t n), struct end *e,
	      uint32_t n);

__attribute__((noinline)) void measured(void (*run)(struct end *e, uint32_t n),
					struct end *e, uint32_t n)
{
	run(e, n);
}

static _Noreturn void usage(void)
{
	fprintf(stderr, "usage: urxe-instructions OPERATION N...\n");
	exit(2);
}

static const struct operation *operation_named(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
		if (!strcmp(name, operations[i].name))
			return &operations[i];
	}
	usage();
}

static void operation_measure(const struct operation *op, uint32_t n)
{
	struct end e = { .rank = 2 };

	end_open(&e, NULL, 0);
	end_connect(&e);
	if (op->prepare)
		op->prepare(&e);
	op->run(&e, 100); /* warm-up: lazy initialization is not counted */
	measured(op->run, &e, n);
	while (qp_count)
		check(ibv_destroy_qp(qps[--qp_count]), "ibv_destroy_qp");
	end_close(&e);
}

int main(int argc, char **argv)
{
	int i;

	if (argc < 3 || argc % 2 == 0)
		usage();
	for (i = 1; i < argc; i += 2)
		operation_measure(operation_named(argv[i]),
				  strtoul(argv[i + 1], NULL, 10));
	return 0;
}
