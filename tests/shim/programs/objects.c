// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two processes with objects of every kind that "rdma resource" shows, for
 * resource.py.  One line of JSON on stdout names the objects.  The processes
 * stay until EOF on stdin.  "x" on stdin kills the second process.
 *
 * With a number as argument: one process with that many QPs.
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define LEN 8192
#define MTU 1024
#define PSN 1000

struct objects {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	struct ibv_mr *mr, *null;
	struct ibv_mw *mw;
	struct ibv_qp *rc, *ud;
	union ibv_gid gid;
};

/* Identifiers for the other process and for the test. */
struct names {
	int pid;
	uint32_t rc, ud, srq, lkey, pd, scq, rcq, sq_psn, rq_psn;
	int scqe, rcqe;
	uint64_t addr;
};

static char memory[LEN];

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	CHECK(list && list[0]);
	ctx = ibv_open_device(list[0]);
	CHECK(ctx);
	ibv_free_device_list(list);
	return ctx;
}

static struct ibv_qp *create_qp(struct objects *o, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr a = {
		.send_cq = o->scq,
		.recv_cq = o->rcq,
		.srq = type == IBV_QPT_RC ? o->srq : NULL,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 4,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(o->pd, &a);

	CHECK(qp);
	return qp;
}

static void create(struct objects *o)
{
	struct ibv_srq_init_attr srq = { .attr = { 16, 1, 0 } };

	o->ctx = open_device();
	CHECK(!ibv_query_gid(o->ctx, 1, 0, &o->gid));
	o->pd = ibv_alloc_pd(o->ctx);
	o->scq = ibv_create_cq(o->ctx, 64, NULL, NULL, 0);
	o->rcq = ibv_create_cq(o->ctx, 16, NULL, NULL, 0);
	o->srq = ibv_create_srq(o->pd, &srq);
	o->mr = ibv_reg_mr(o->pd, memory, LEN,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_MW_BIND);
	o->null = ibv_alloc_null_mr(o->pd);
	o->mw = ibv_alloc_mw(o->pd, IBV_MW_TYPE_1); /* not shown */
	CHECK(o->pd && o->scq && o->rcq && o->srq && o->mr && o->null && o->mw);
	o->rc = create_qp(o, IBV_QPT_RC);
	o->ud = create_qp(o, IBV_QPT_UD);
}

static void name(const struct objects *o, struct names *n)
{
	memset(n, 0, sizeof(*n));
	n->pid = getpid();
	n->rc = o->rc->qp_num;
	n->ud = o->ud->qp_num;
	n->srq = o->srq->handle;
	n->lkey = o->mr->lkey;
	n->pd = o->pd->handle;
	n->scq = o->scq->handle;
	n->rcq = o->rcq->handle;
	n->scqe = o->scq->cqe;
	n->rcqe = o->rcq->cqe;
	n->addr = (uintptr_t)memory;
	n->sq_psn = PSN;
	n->rq_psn = PSN;
}

static void connect_to(struct objects *o, const struct names *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->rc,
		.rq_psn = PSN,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1 },
		.sq_psn = PSN,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
	};

	CHECK(!ibv_modify_qp(o->rc, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	a.ah_attr.grh.dgid = o->gid;
	CHECK(!ibv_modify_qp(o->rc, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	a.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(o->rc, &a,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC));
}

/* RDMA WRITE of several packets, so that the PSNs advance. */
static void write_to(struct objects *o, const struct names *peer)
{
	struct ibv_sge sge = { (uintptr_t)memory, LEN, o->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = peer->addr, .rkey = peer->lkey },
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;
	int n;

	CHECK(!ibv_post_send(o->rc, &wr, &bad));
	while (!(n = ibv_poll_cq(o->scq, 1, &wc)))
		usleep(100);
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
	/* the query stores the PSNs in shared memory */
	CHECK(!ibv_query_qp(o->rc, &attr, IBV_QP_STATE, &init));
}

static void show(const struct names *n)
{
	printf("{\"pid\": %d, \"rc\": %u, \"ud\": %u, \"srq\": %u, "
	       "\"lkey\": %u, \"pd\": %u, \"scq\": %u, \"rcq\": %u, "
	       "\"scqe\": %d, \"rcqe\": %d, \"addr\": %llu, \"len\": %d, "
	       "\"sq_psn\": %u, \"rq_psn\": %u}",
	       n->pid, n->rc, n->ud, n->srq, n->lkey, n->pd, n->scq, n->rcq,
	       n->scqe, n->rcqe, (unsigned long long)n->addr, LEN, n->sq_psn,
	       n->rq_psn);
}

static void second(int sock)
{
	struct names own, peer;
	struct objects o;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	create(&o);
	name(&o, &own);
	CHECK(send(sock, &own, sizeof(own), 0) == sizeof(own));
	CHECK(recv(sock, &peer, sizeof(peer), 0) == sizeof(peer));
	connect_to(&o, &peer);
	CHECK(send(sock, "", 1, 0) == 1);
	pause();
}

static void many(int n)
{
	struct objects o;

	create(&o);
	for (; n > 2; n--)
		create_qp(&o, IBV_QPT_UD);
	printf("ready\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

int main(int argc, char **argv)
{
	struct names own, peer;
	struct objects o;
	int sock[2], c;
	pid_t pid;

	if (argc > 1) {
		many(atoi(argv[1]));
		return 0;
	}
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		second(sock[1]);
		return 0;
	}
	create(&o);
	name(&o, &own);
	CHECK(recv(sock[0], &peer, sizeof(peer), 0) == sizeof(peer));
	CHECK(send(sock[0], &own, sizeof(own), 0) == sizeof(own));
	connect_to(&o, &peer);
	CHECK(recv(sock[0], &c, 1, 0) == 1);
	write_to(&o, &peer);
	own.sq_psn += LEN / MTU;
	peer.rq_psn += LEN / MTU;
	printf("[");
	show(&own);
	printf(", ");
	show(&peer);
	printf("]\n");
	fflush(stdout);
	while ((c = getchar()) != EOF) {
		if (c != 'x')
			continue;
		kill(pid, SIGKILL);
		CHECK(waitpid(pid, NULL, 0) == pid);
		printf("killed\n");
		fflush(stdout);
	}
	kill(pid, SIGKILL);
	return 0;
}
