/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lesson 1: connect by hand.  Two processes, A and B, have a device context
 * each, as on two machines.  They exchange their addresses over a socket.
 * Then B sends a line to A.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#ifndef BREAK
#define BREAK 0
#endif

/* The values that a side must know about its peer to connect */
struct address {
	union ibv_gid gid; /* of the port: an IP address on RoCE */
	uint32_t qpn; /* QP number */
	uint32_t psn; /* PSN of the first packet that the QP sends */
};

static char name;
static int sock; /* connected to the other side */
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char memory[64];
static struct address me, peer;

static void check(int ok, const char *what)
{
	if (ok)
		return;
	printf("%c: %s: %s\n", name, what, strerror(errno));
	exit(1);
}

/* Create a QP and the objects that it needs. */
static void make_qp(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };

	check(list && list[0], "ibv_get_device_list");
	ctx = ibv_open_device(list[0]);
	check(ctx != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	check(pd != NULL, "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	check(mr != NULL, "ibv_reg_mr");
	cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	check(cq != NULL, "ibv_create_cq");
	init.send_cq = init.recv_cq = cq;
	init.cap.max_send_wr = init.cap.max_recv_wr = 1;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	qp = ibv_create_qp(pd, &init);
	check(qp != NULL, "ibv_create_qp");

	me.qpn = qp->qp_num;
	me.psn = name == 'A' ? 100 : 200; /* in practice: random */
	check(!ibv_query_gid(ctx, 1, 0, &me.gid), "ibv_query_gid");
}

/* The addresses are exchanged over a socket, without RDMA. */
static void send_address(void)
{
	check(write(sock, &me, sizeof(me)) == sizeof(me), "write");
}

static void receive_address(void)
{
	errno = ECONNRESET;
	check(recv(sock, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer),
	      "no address from the other side");
}

static void to_init(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS),
	      "to INIT");
}

/* Ready to receive: set the peer, and the first PSN to expect from it. */
static void to_rtr(void)
{
	int b = name == 'B';
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		   IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer.qpn,
		.rq_psn = peer.psn - (BREAK == 2 && !b),
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .port_num = 1,
			     .is_global = !(BREAK == 3 && b),
			     .grh = { .dgid = peer.gid, .hop_limit = 64 } },
	};

	if (BREAK == 1 && b)
		mask &= ~IBV_QP_MIN_RNR_TIMER;
	check(!ibv_modify_qp(qp, &attr, mask), "to RTR");
}

/* Ready to send: set the ACK timeout and the number of retries. */
static void to_rts(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = me.psn,
		.timeout = 14, /* 4.096 us << 14: 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC),
	      "to RTS");
}

static struct ibv_sge all_of_memory(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)memory,
			       .length = sizeof(memory),
			       .lkey = mr->lkey };

	return sge;
}

static void print_completion(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	printf("%c: completion: %s\n", name, ibv_wc_status_str(wc.status));
	if (wc.status != IBV_WC_SUCCESS)
		exit(1);
}

static void a(pid_t child)
{
	struct ibv_recv_wr wr = { .num_sge = 1 }, *bad;
	struct ibv_sge sge;
	int failed;

	make_qp();
	to_init();
	send_address();
	receive_address();
	sge = all_of_memory();
	wr.sg_list = &sge;
	check(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
	if (BREAK != 4) {
		to_rtr();
		to_rts();
		printf("A: connected\n");
	}
	send_address(); /* the same address again: now B may send */
	waitpid(child, &failed, 0);
	if (failed) {
		printf("A: B has failed\n");
		exit(1);
	}
	print_completion();
	printf("A: \"%s\"\n", memory);
}

static void b(void)
{
	struct ibv_send_wr wr = { .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_sge sge;

	receive_address();
	make_qp();
	to_init();
	send_address();
	receive_address(); /* A is ready */
	to_rtr();
	to_rts();
	printf("B: connected\n");
	strcpy(memory, "a line from B");
	sge = all_of_memory();
	wr.sg_list = &sge;
	check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	print_completion();
}

int main(void)
{
	pid_t child;
	int sv[2];

	setvbuf(stdout, NULL, _IOLBF, 0); /* print each line at once */
	name = 'A';
	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv), "socketpair");
	child = fork(); /* before the first verb */
	check(child >= 0, "fork");
	name = child ? 'A' : 'B';
	sock = sv[child ? 0 : 1];
	close(sv[child ? 1 : 0]);
	if (child)
		a(child);
	else
		b();
	check(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr) &&
		      !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
	      "destroying the objects");
	return 0;
}
