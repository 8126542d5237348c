// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

bool wrong;
struct ibv_context *ctx;
struct ibv_pd *pd;
struct ibv_cq *cq, *rcq;
struct ibv_srq *srq;
union ibv_gid gid;
char *mine, *theirs;
struct ibv_mr *my_mr, *their_mr;
struct ibv_qp *a, *b;
struct ibv_qp *qps[8];
int num_qps;

/* ------------------------------------------------------- a device, two QPs */

void device_open(void)
{
	ctx = open_device();
	need(!ibv_query_gid(ctx, 1, 0, &gid));
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	rcq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	mine = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	theirs = calloc(1, SIZE);
	need(pd && cq && rcq && mine != MAP_FAILED && theirs);
	my_mr = ibv_reg_mr(pd, mine, SIZE, LOCAL);
	their_mr = ibv_reg_mr(pd, theirs, SIZE, REMOTE);
	need(my_mr && their_mr);
}

void device_close(void)
{
	while (num_qps)
		need(!ibv_destroy_qp(qps[--num_qps]));
	need(!srq || !ibv_destroy_srq(srq));
	need(!my_mr || !ibv_dereg_mr(my_mr));
	need(!ibv_dereg_mr(their_mr));
	need(!ibv_destroy_cq(cq) && !ibv_destroy_cq(rcq));
	need(!ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	munmap(mine, SIZE);
	free(theirs);
}

struct ibv_qp *qp_make(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = rcq,
		.srq = srq,
		.qp_type = type,
		.pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = 64 },
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &init);

	need(qp && num_qps < 8);
	qps[num_qps++] = qp;
	return qp;
}

void qp_receives(struct ibv_qp *qp, uint32_t dest)
{
	bool ud = qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 1,
		.qp_access_flags = REMOTE,
	};

	need(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = dest;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.dgid = gid;
	attr.ah_attr.port_num = 1;
	need(!ibv_modify_qp(qp, &attr,
			    ud ? IBV_QP_STATE :
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					    IBV_QP_MAX_DEST_RD_ATOMIC |
					    IBV_QP_MIN_RNR_TIMER));
}

void qp_connect(struct ibv_qp *qp, uint32_t dest)
{
	bool ud = qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};

	qp_receives(qp, dest);
	need(!ibv_modify_qp(qp, &attr,
			    ud ? IBV_QP_STATE | IBV_QP_SQ_PSN :
				 IBV_QP_STATE | IBV_QP_TIMEOUT |
					    IBV_QP_RETRY_CNT |
					    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC));
}

void pair_make(struct ibv_qp **one, struct ibv_qp **other)
{
	*one = qp_make(IBV_QPT_RC);
	*other = qp_make(IBV_QPT_RC);
	qp_connect(*one, (*other)->qp_num);
	qp_connect(*other, (*one)->qp_num);
}

/* ------------------------------------------------------- work */

struct ibv_sge sge_of(size_t at, uint32_t len)
{
	return (struct ibv_sge){ (uintptr_t)mine + at, len, my_mr->lkey };
}

void receive(size_t at, uint32_t len)
{
	struct ibv_sge sge = sge_of(at, len);
	struct ibv_recv_wr wr = { .wr_id = 100, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	need(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) :
		     ibv_post_recv(b, &wr, &bad)));
}

void request(struct ibv_qp *qp, enum ibv_wr_opcode op, size_t at, uint32_t len,
	     size_t remote, unsigned int flags)
{
	struct ibv_sge sge = sge_of(at, len);
	struct ibv_send_wr wr = { .wr_id = 7,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = flags };
	struct ibv_send_wr *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)theirs + remote;
		wr.wr.atomic.rkey = their_mr->rkey;
	} else if (op != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)theirs + remote;
		wr.wr.rdma.rkey = their_mr->rkey;
	}
	need(!ibv_post_send(qp, &wr, &bad));
}

void done_of(struct ibv_cq *of, struct ibv_cq *other, int n)
{
	struct ibv_wc wc;
	int got;

	alarm(60);
	while (n > 0) {
		got = ibv_poll_cq(of, 1, &wc);
		if (!got && other)
			got = ibv_poll_cq(other, 1, &wc);
		need(got >= 0 && (!got || wc.status == IBV_WC_SUCCESS));
		n -= got;
	}
}

void done(int n)
{
	done_of(cq, rcq, n);
}

void received(int n)
{
	done_of(rcq, NULL, n);
}

/* ------------------------------------------------------- cases */

static const struct device_case *chosen;

static void chosen_run(bool is_wrong)
{
	wrong = is_wrong;
	if (chosen->before)
		chosen->before();
	device_open();
	pair_make(&a, &b);
	chosen->run();
	device_close();
}

int device_main(int argc, char **argv, const struct device_case *cases)
{
	struct test_case all[64] = { { NULL, NULL } };
	int i;

	for (i = 0; cases[i].name; i++) {
		need(i < 63);
		all[i].name = cases[i].name;
		all[i].run = chosen_run;
		if (argc > 1 && !strcmp(argv[1], cases[i].name))
			chosen = &cases[i];
	}
	return case_main(argc, argv, all);
}
