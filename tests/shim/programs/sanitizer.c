// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program to be built with a sanitizer (sanitizer.sh).  Two threads with a
 * QP each send messages to and fro.  Each reads what the other wrote, ordered
 * only by RDMA, which must not be reported.
 *
 * With an argument the program has a data race and a use after free, which
 * the sanitizer must report.
 */
#include <infiniband/verbs.h>
#include <pthread.h>

#include "test.h"

enum { SIZE = 4096, ROUNDS = 20 };

#ifdef OWN_OPTIONS
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_stack_use_after_return=1";
}
#endif

static struct ibv_context *ctx;
static int shared;
static int bug;

struct end {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *in, *out;
	union ibv_gid gid;
	int first;
};

static void end_open(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 },
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	e->in = malloc(2 * SIZE);
	e->out = e->in + SIZE;
	e->pd = ibv_alloc_pd(ctx);
	e->cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	CHECK(e->in && e->pd && e->cq);
	e->mr = ibv_reg_mr(e->pd, e->in, 2 * SIZE, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	CHECK(e->mr && e->qp);
	CHECK(!ibv_modify_qp(e->qp, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS));
	CHECK(!ibv_query_gid(ctx, 1, 0, &e->gid));
}

static void end_connect(struct end *e, const struct end *to)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qp->qp_num,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = to->gid, .hop_limit = 1 } },
	};

	CHECK(!ibv_modify_qp(e->qp, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = a.rnr_retry = 7;
	CHECK(!ibv_modify_qp(e->qp, &a,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC));
}

static void end_post_recv(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->in, SIZE, e->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(!ibv_post_recv(e->qp, &wr, &bad));
}

static void end_wait(struct end *e, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(e->cq, 1, &wc);
	while (!n || (n == 1 && !wc.status && wc.opcode != opcode));
	CHECK(n == 1 && !wc.status);
}

static void end_send(struct end *e, int size)
{
	struct ibv_sge sge = { (uintptr_t)e->out, size, e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	CHECK(!ibv_post_send(e->qp, &wr, &bad));
}

static void *play(void *arg)
{
	struct end *e = arg;
	int i, size;

	for (i = 0; bug && i < 1000; i++)
		shared++;
	for (i = 0; !bug && i < ROUNDS; i++) {
		size = i % 2 ? SIZE : 16;
		if (!e->first || i) {
			end_wait(e, IBV_WC_RECV);
			CHECK(e->in[0] == (char)(e->first ? i - 1 : i));
		}
		end_post_recv(e);
		e->out[0] = (char)i;
		end_send(e, size);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct end e[2] = { { .first = 1 }, { .first = 0 } };
	pthread_t t[2];
	int i;

	(void)argv;
	bug = argc > 1;
	CHECK(list && list[0]);
	ctx = ibv_open_device(list[0]);
	CHECK(ctx);
	end_open(&e[0]);
	end_open(&e[1]);
	end_connect(&e[0], &e[1]);
	end_connect(&e[1], &e[0]);
	end_post_recv(&e[1]);
	for (i = 0; i < 2; i++)
		CHECK(!pthread_create(&t[i], NULL, play, &e[i]));
	for (i = 0; i < 2; i++)
		CHECK(!pthread_join(t[i], NULL));
	for (i = 0; i < 2; i++) {
		CHECK(!ibv_destroy_qp(e[i].qp) && !ibv_destroy_cq(e[i].cq) &&
		      !ibv_dereg_mr(e[i].mr) && !ibv_dealloc_pd(e[i].pd));
		free(e[i].in);
		if (bug && e[i].in[0])
			puts("not noticed");
	}
	CHECK(!ibv_close_device(ctx));
	ibv_free_device_list(list);
	puts("played");
	return 0;
}
