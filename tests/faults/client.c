// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * client N: post N WRITEs to a QP that is connected to itself, and check the
 * result of each verbs call.  The tests run it through a symbolic link, whose
 * name is what prog= matches.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char buf[64];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	must(list && *list, "ibv_get_device_list");
	ctx = ibv_open_device(*list);
	must(ctx != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	return ctx;
}

static void connect_itself(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS),
	     "INIT");
	must(!ibv_query_gid(qp->context, 1, 0, &a.ah_attr.grh.dgid), "GID");
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = qp->qp_num;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.min_rnr_timer = 1;
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = a.rnr_retry = 7;
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

/* The WRITE is empty, so it needs no rkey. */
static void write_once(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)buf, 0, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (!n);
	must(n == 1, "ibv_poll_cq");
	if (wc.status) {
		fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	struct ibv_context *ctx = open_first();
	int n = argc > 1 ? atoi(argv[1]) : 1;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	pd = ibv_alloc_pd(ctx);
	must(pd != NULL, "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	must(mr != NULL, "ibv_reg_mr");
	cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	must(cq != NULL, "ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	attr.cap.max_send_wr = attr.cap.max_recv_wr = 1;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	qp = ibv_create_qp(pd, &attr);
	must(qp != NULL, "ibv_create_qp");
	connect_itself(qp);
	while (n-- > 0)
		write_once(qp, cq, mr);
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	must(!ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	must(!ibv_close_device(ctx), "ibv_close_device");
	return 0;
}
