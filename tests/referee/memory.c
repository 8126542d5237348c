// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is wrong with the memory of a WR in flight.  A kind device gives these
 * programs the data that they want, all the same.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

#define SIZE 65536
#define LOCAL IBV_ACCESS_LOCAL_WRITE
#define REMOTE                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

#define need(cond)                                                         \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "line %d: %s\n", __LINE__, #cond); \
			exit(EXIT_FAILURE);                                \
		}                                                          \
	} while (0)

static bool wrong;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq, *rcq; /* of sends, of receives */
static struct ibv_srq *srq;
static union ibv_gid gid;
/* ours, which no peer may write to, and what peers read and write */
static char *mine, *theirs;
static struct ibv_mr *my_mr, *their_mr;
/* a sends, b is its other end */
static struct ibv_qp *a, *b;
static struct ibv_qp *qps[8];
static int num_qps;
static int child_socket; /* of the mistakes that two processes make */

/* ------------------------------------------------------- a device, two QPs */

static void device_open(void)
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

static void device_close(void)
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

static struct ibv_qp *qp_make(enum ibv_qp_type type)
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

static void qp_receives(struct ibv_qp *qp, uint32_t dest)
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

static void qp_connect(struct ibv_qp *qp, uint32_t dest)
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

static void pair_make(struct ibv_qp **one, struct ibv_qp **other)
{
	*one = qp_make(IBV_QPT_RC);
	*other = qp_make(IBV_QPT_RC);
	qp_connect(*one, (*other)->qp_num);
	qp_connect(*other, (*one)->qp_num);
}

/* ------------------------------------------------------- work */

static struct ibv_sge sge_of(size_t at, uint32_t len)
{
	return (struct ibv_sge){ (uintptr_t)mine + at, len, my_mr->lkey };
}

static void receive(size_t at, uint32_t len)
{
	struct ibv_sge sge = sge_of(at, len);
	struct ibv_recv_wr wr = { .wr_id = 100, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	need(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) :
		     ibv_post_recv(b, &wr, &bad)));
}

/* From or into mine; remote is where in theirs. */
static void request(struct ibv_qp *qp, enum ibv_wr_opcode op, size_t at,
		    uint32_t len, size_t remote, unsigned int flags)
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

/* Completions, without error: n of one, and as many of the other as come. */
static void done_of(struct ibv_cq *of, struct ibv_cq *other, int n)
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

static void done(int n)
{
	done_of(cq, rcq, n);
}

static void received(int n)
{
	done_of(rcq, NULL, n);
}

/* ------------------------------------------------------- mistakes */

static void source_send(void)
{
	receive(4096, 64);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	if (wrong)
		mine[17] = 1;
	done(2);
	mine[18] = 1;
}

/* The completion of a later WR is that of those before it, too. */
static void source_unsignaled(void)
{
	request(a, IBV_WR_RDMA_WRITE, 0, 4096, 0, 0);
	request(a, IBV_WR_RDMA_WRITE, 8192, 8, 8192, 0);
	if (wrong)
		mine[4095] = 1;
	request(a, IBV_WR_RDMA_WRITE, 8192, 8, 8192, IBV_SEND_SIGNALED);
	done(1);
	mine[0] = 1;
}

/* ... by the other calls */
static void source_wr_api(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(a);
	struct ibv_sge sge[2] = { sge_of(0, 8), sge_of(512, 40) };

	receive(4096, 64);
	ibv_wr_start(ex);
	ex->wr_id = 9;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 2, sge);
	need(!ibv_wr_complete(ex));
	if (wrong)
		mine[512 + 39] = 1;
	done(2);
}

/* One buffer for all, and nobody ever polls. */
static void source_again(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		if (wrong)
			mine[0] = (char)i;
		request(a, IBV_WR_RDMA_WRITE, 0, 16, 0, 0);
	}
}

/* b has a message of a's, and a has the answer; both are not polled yet. */
static void answered(void)
{
	struct ibv_sge sge = sge_of(8192, 64);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	receive(4096, 64);
	need(!ibv_post_recv(a, &wr, &bad));
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	received(1);
	request(b, IBV_WR_SEND, 16384, 64, 0, IBV_SEND_SIGNALED);
	received(1);
}

static void source_answered(void)
{
	answered();
	if (wrong)
		mine[0] = 1;
	done_of(cq, NULL, 2);
}

static void freed_answered(void)
{
	answered();
	if (wrong)
		need(!munmap(mine, 4096));
	done_of(cq, NULL, 2);
}

/* Peers may write to it, and none did. */
static void source_open(void)
{
	struct ibv_mr *was = my_mr;
	char *where = mine;

	my_mr = their_mr;
	mine = theirs;
	request(b, IBV_WR_RDMA_WRITE, 128, 8, 256, IBV_SEND_SIGNALED);
	done(1);
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 4096, IBV_SEND_SIGNALED);
	if (wrong)
		theirs[9] = 1;
	done(1);
	my_mr = was;
	mine = where;
}

/* The same when the device was closed and opened again. */
static void source_reopened(void)
{
	void *hole[128];
	size_t i;

	device_close();
	srq = NULL;
	/* nothing new stands where something of the old one stood */
	for (i = 0; i < 128; i++)
		need(hole[i] = malloc(64 * (i + 1)));
	device_open();
	pair_make(&a, &b);
	source_open();
	for (i = 0; i < 128; i++)
		free(hole[i]);
}

/* Inline data are the device's when the call returns. */
static void source_inline(void)
{
	unsigned int inl = wrong ? 0 : IBV_SEND_INLINE;

	request(a, IBV_WR_RDMA_WRITE, 0, 32, 0, IBV_SEND_SIGNALED | inl);
	mine[0] = 1;
	done(1);
}

static void source_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
	struct ibv_mr *mr, *was = my_mr;
	char *where = mine;
	uint64_t one = 1;

	need(dm);
	mr = ibv_reg_dm_mr(pd, dm, 0, 4096, LOCAL | IBV_ACCESS_ZERO_BASED);
	need(mr);
	my_mr = mr;
	mine = NULL;
	request(a, IBV_WR_RDMA_WRITE, 64, 64, 0, IBV_SEND_SIGNALED);
	if (wrong)
		need(!ibv_memcpy_to_dm(dm, 80, &one, 8));
	done(1);
	my_mr = was;
	mine = where;
	need(!ibv_dereg_mr(mr) && !ibv_free_dm(dm));
}

static void source_freed(void)
{
	request(a, IBV_WR_RDMA_WRITE, 8192, 64, 0, IBV_SEND_SIGNALED);
	if (wrong)
		need(!munmap(mine + 8192, 4096));
	done(1);
}

/* The memory of an MR went away before the WR that names it. */
static void unmapped(void)
{
	if (wrong)
		need(!munmap(mine + 8192, 4096));
	request(a, IBV_WR_RDMA_WRITE, wrong ? 8192 : 0, 64, 0,
		IBV_SEND_SIGNALED);
	done(1);
}

static void read_unmapped(void)
{
	if (wrong)
		need(!munmap(mine + 8192, 4096));
	request(a, IBV_WR_RDMA_READ, wrong ? 8192 : 0, 64, 0,
		IBV_SEND_SIGNALED);
	done(1);
}

/* A buffer is cleared for the message that may be there already. */
static void recv_cleared(void)
{
	memset(mine + 4096, 7, 256);
	if (!wrong)
		memset(mine + 4096, 0, 256);
	receive(4096, 256);
	if (wrong)
		memset(mine + 4096, 0, 256);
	request(a, IBV_WR_SEND, 0, 8, 0, IBV_SEND_SIGNALED);
	done(2);
	memset(mine + 4096, 9, 256);
}

/* Something of the program's own lies in a buffer that is too long. */
static void recv_touched(void)
{
	receive(4096, 256);
	if (wrong)
		mine[4096 + 200] = 1;
	request(a, IBV_WR_SEND, 0, 8, 0, IBV_SEND_SIGNALED);
	done(2);
}

static void recv_cleared_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8,
						    .max_sge = 2 } };

	while (num_qps)
		need(!ibv_destroy_qp(qps[--num_qps]));
	srq = ibv_create_srq(pd, &init);
	need(srq);
	pair_make(&a, &b);
	recv_cleared();
}

static void read_written(void)
{
	request(a, IBV_WR_RDMA_READ, 0, 64, 0, IBV_SEND_SIGNALED);
	if (wrong)
		mine[8] = 1;
	done(1);
	mine[8] = 2;
}

static void atomic_written(void)
{
	request(a, IBV_WR_ATOMIC_FETCH_AND_ADD, 16, 8, 0, IBV_SEND_SIGNALED);
	if (wrong)
		mine[16] = 1;
	done(1);
}

static void recv_overlap(void)
{
	receive(4096, 64);
	receive(wrong ? 4096 + 32 : 4096 + 64, 64);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	done(4);
}

static void recv_shared(void)
{
	receive(4096, 64);
	receive(wrong ? 4096 : 8192, 64);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	done(4);
}

/* Two READs of different things to one place. */
static void read_overlap(void)
{
	request(a, IBV_WR_RDMA_READ, 0, 64, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_RDMA_READ, wrong ? 0 : 64, 64, 64, IBV_SEND_SIGNALED);
	done(2);
}

static void read_recv_overlap(void)
{
	receive(4096, 64);
	request(a, IBV_WR_RDMA_READ, wrong ? 4096 : 0, 64, 0,
		IBV_SEND_SIGNALED);
	done(1);
	request(a, IBV_WR_SEND, 0, 8, 0, IBV_SEND_SIGNALED);
	done(2);
}

/* Nothing orders what two QPs write. */
static void remote_overlap(void)
{
	struct ibv_qp *c, *d;

	pair_make(&c, &d);
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	request(c, IBV_WR_RDMA_WRITE, 64, 8, 56, IBV_SEND_SIGNALED);
	/* one QP keeps its own in order */
	request(c, IBV_WR_RDMA_WRITE, 128, 8, 56, IBV_SEND_SIGNALED);
	done(wrong ? 3 : 2);
}

/* ... an atomic WRITE, too. */
static void remote_overlap_atomic(void)
{
	struct ibv_qp *c, *d;

	pair_make(&c, &d);
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	/* which installed headers may not name */
	request(c, (enum ibv_wr_opcode)15, 64, 8, 56, IBV_SEND_SIGNALED);
	done(wrong ? 2 : 1);
}

/*
 * The same from two processes: the child's WRITE is to where ours is.  What it
 * says by the socket it may say when it has polled.
 */
struct place {
	uint32_t qpn, rkey;
	uint64_t addr;
};

static void child_writes(int s)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED };
	struct place to;
	char byte = 0;

	device_open();
	sge = sge_of(0, 64);
	a = qp_make(IBV_QPT_RC);
	need(write(s, &a->qp_num, 4) == 4);
	need(read(s, &to, sizeof(to)) == sizeof(to));
	qp_connect(a, to.qpn);
	need(write(s, &byte, 1) == 1);
	need(read(s, &byte, 1) == 1);
	wr.wr.rdma.rkey = to.rkey;
	wr.wr.rdma.remote_addr = to.addr;
	need(!ibv_post_send(a, &wr, &bad));
	if (!wrong)
		done(1);
	need(write(s, &byte, 1) == 1);
	need(read(s, &byte, 1) == 1);
	if (wrong)
		done(1);
	device_close();
}

static void remote_overlap_processes(void)
{
	struct ibv_qp *end = qp_make(IBV_QPT_RC);
	struct place to = { end->qp_num, their_mr->rkey, (uintptr_t)theirs };
	uint32_t qpn;
	int status;
	char byte;

	need(read(child_socket, &qpn, 4) == 4);
	qp_connect(end, qpn);
	need(write(child_socket, &to, sizeof(to)) == sizeof(to));
	need(read(child_socket, &byte, 1) == 1);
	need(write(child_socket, &byte, 1) == 1);
	need(read(child_socket, &byte, 1) == 1);
	request(a, IBV_WR_RDMA_WRITE, 64, 8, 60, IBV_SEND_SIGNALED);
	done(1);
	need(write(child_socket, &byte, 1) == 1);
	need(wait(&status) > 0 && !status);
}

static void mr_of_receive(void)
{
	receive(4096, 64);
	if (!wrong) {
		request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
		done(2);
	}
	need(!ibv_dereg_mr(my_mr));
	my_mr = NULL;
}

/* The same of an XRC SRQ, which any target of its domain may use. */
static void mr_of_xrc_receive(void)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &domain);
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = rcq,
	};
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp;

	need(xrcd);
	srq = ibv_create_srq_ex(ctx, &init);
	qp = ibv_create_qp_ex(ctx, &target);
	need(srq && qp);
	qp_receives(qp, a->qp_num);
	receive(0, 64);
	if (!wrong)
		need(!ibv_destroy_qp(qp));
	need(!ibv_dereg_mr(my_mr));
	my_mr = NULL;
	if (wrong)
		need(!ibv_destroy_qp(qp));
	need(!ibv_destroy_srq(srq) && !ibv_close_xrcd(xrcd));
	srq = NULL;
}

/*
 * An MR changes while another thread destroys QPs which need it: that those are
 * not looked at which are gone is seen if freed memory is of no use.
 */
#define RACED 80
static struct ibv_qp *raced[RACED];

static void *raced_destroy(void *done_flag)
{
	int i;

	for (i = 0; i < RACED; i++)
		need(!ibv_destroy_qp(raced[i]));
	__atomic_store_n((bool *)done_flag, true, __ATOMIC_RELEASE);
	return NULL;
}

static void mr_of_other_threads(void)
{
	struct ibv_mr *other = ibv_reg_mr(pd, mine, SIZE, LOCAL);
	struct ibv_mr *mr = wrong ? my_mr : other;
	bool is_done = false;
	pthread_t thread;
	int i;

	need(other && !ibv_resize_cq(rcq, RACED));
	for (i = 0; i < RACED; i++) {
		b = raced[i] = qp_make(IBV_QPT_RC);
		num_qps--;
		qp_connect(b, b->qp_num);
		receive((size_t)i * 64, 64);
	}
	need(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   LOCAL));
	need(!pthread_create(&thread, NULL, raced_destroy, &is_done));
	while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE))
		need(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
				   0, LOCAL));
	pthread_join(thread, NULL);
	need(!ibv_dereg_mr(other));
}

static void mr_of_send(void)
{
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	need(!ibv_dereg_mr(my_mr));
	my_mr = NULL;
	if (wrong)
		done(1);
}

static void mr_on_answer(void)
{
	struct ibv_mr *was = my_mr;
	struct ibv_sge sge = sge_of(8192, 64);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	receive(4096, 64);
	need(!ibv_post_recv(a, &wr, &bad));
	my_mr = ibv_reg_mr(pd, mine, SIZE, LOCAL);
	need(my_mr);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	received(1);
	if (!wrong)
		done_of(cq, NULL, 1);
	sge = sge_of(512, 64);
	sge.lkey = was->lkey;
	need(!ibv_post_send(
		b,
		&(struct ibv_send_wr){ .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED },
		&(struct ibv_send_wr *){ NULL }));
	received(1);
	need(!ibv_dereg_mr(my_mr));
	my_mr = was;
	done_of(cq, NULL, wrong ? 2 : 1);
}

static void mr_moved(void)
{
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	need(!ibv_rereg_mr(my_mr, IBV_REREG_MR_CHANGE_TRANSLATION, pd, theirs,
			   SIZE, 0));
	if (wrong)
		done(1);
}

static void mw_of_bind(void)
{
	struct ibv_mr *mr =
		ibv_reg_mr(pd, theirs, SIZE, REMOTE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *bad, wr = { .wr_id = 3,
					.opcode = IBV_WR_BIND_MW,
					.send_flags = IBV_SEND_SIGNALED };

	need(mr && mw);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)theirs;
	wr.bind_mw.bind_info.length = 64;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	need(!ibv_post_send(a, &wr, &bad));
	if (!wrong)
		done(1);
	need(!ibv_dealloc_mw(mw));
	if (wrong)
		done(1);
	need(!ibv_dereg_mr(mr));
}

static void ah_of_send(void)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .grh.dgid = gid,
				    .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);
	struct ibv_qp *ud = qp_make(IBV_QPT_UD);
	struct ibv_sge sge = sge_of(0, 64);
	struct ibv_send_wr *bad, wr = { .wr_id = 4,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	need(ah);
	qp_connect(ud, 0);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = ud->qp_num;
	wr.wr.ud.remote_qkey = 1;
	need(!ibv_post_send(ud, &wr, &bad));
	if (!wrong)
		done(1);
	need(!ibv_destroy_ah(ah));
	if (wrong)
		done(1);
}

/* What a READ brings is sent on. */
static void fence(void)
{
	receive(4096, 64);
	request(a, IBV_WR_RDMA_READ, 0, 64, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_SEND, 32, 64, 0,
		IBV_SEND_SIGNALED | (wrong ? 0 : IBV_SEND_FENCE));
	done(3);
}

static void fence_atomic(void)
{
	request(a, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_RDMA_WRITE, 0, 8, 64,
		IBV_SEND_SIGNALED | (wrong ? 0 : IBV_SEND_FENCE));
	done(2);
}

/* No fence holds back what is copied by the call. */
static void fence_inline(void)
{
	request(a, IBV_WR_RDMA_READ, 0, 32, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	request(a, IBV_WR_RDMA_WRITE, 0, 32, 64,
		IBV_SEND_SIGNALED | IBV_SEND_FENCE | IBV_SEND_INLINE);
	done(wrong ? 2 : 1);
}

/* Nor does that of another QP. */
static void fence_other_qp(void)
{
	struct ibv_qp *c, *d;

	pair_make(&c, &d);
	request(a, IBV_WR_RDMA_READ, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	request(c, IBV_WR_RDMA_WRITE, 0, 64, 128,
		IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	done(wrong ? 2 : 1);
}

/* What is to be read is written anew. */
static void write_after_read(void)
{
	request(a, IBV_WR_RDMA_READ, 0, 64, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_RDMA_WRITE, 512, 8, 8,
		IBV_SEND_SIGNALED | (wrong ? 0 : IBV_SEND_FENCE));
	done(2);
}

static void write_after_atomic(void)
{
	request(a, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_RDMA_WRITE, 512, 64, 0,
		IBV_SEND_SIGNALED | (wrong ? 0 : IBV_SEND_FENCE));
	done(2);
}

/* A READ, on another QP, to what is being sent. */
static void read_over_source(void)
{
	struct ibv_qp *c, *d;

	pair_make(&c, &d);
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	request(c, IBV_WR_RDMA_READ, 0, 64, 128, IBV_SEND_SIGNALED);
	done(wrong ? 2 : 1);
}

/* A message may come to where another one is sent from. */
static void recv_over_source(void)
{
	receive(0, 64);
	request(a, IBV_WR_SEND, wrong ? 0 : 64, 64, 0, IBV_SEND_SIGNALED);
	done(2);
}

/* ------------------------------------------------------- no mistakes */

/* As pingpongs do: one place for all messages, which are all the same. */
static void one_buffer(void)
{
	int i;

	for (i = 0; i < 8; i++)
		receive(0, 64);
	for (i = 0; i < 8; i++)
		request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	done(16);
}

/* Results that nobody wants, and what is read to know that it was written. */
static void one_result(void)
{
	struct ibv_qp *c, *d;
	int i;

	pair_make(&c, &d);
	for (i = 0; i < 4; i++)
		request(i & 1 ? a : c, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0,
			IBV_SEND_SIGNALED);
	done(4);
	for (i = 0; i < 4; i++)
		request(a, IBV_WR_RDMA_READ, 0, 8, 64 * (size_t)i,
			IBV_SEND_SIGNALED);
	done(4);
	for (i = 0; i < 4; i++)
		request(a, IBV_WR_RDMA_READ, 0, 4096, 0, IBV_SEND_SIGNALED);
	done(4);
}

/* A peer writes to what is being sent: who may, may at any time. */
static void peer_writes(void)
{
	struct ibv_mr *was = my_mr;
	char *where = mine;

	my_mr = their_mr;
	mine = theirs;
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 4096, IBV_SEND_SIGNALED);
	my_mr = was;
	mine = where;
	mine[0] = 1;
	request(b, IBV_WR_RDMA_WRITE, 0, 8, 0, IBV_SEND_SIGNALED);
	done(2);
}

/* A message is shorter than its buffer, which has the last one's end. */
static void short_messages(void)
{
	int i;

	for (i = 0; i < 4; i++) {
		receive(4096, 4096);
		mine[0] = (char)i;
		request(a, IBV_WR_SEND, 0, 4000 - (uint32_t)i * 999, 0,
			IBV_SEND_SIGNALED);
		done(2);
	}
}

/* Many bytes, of which some are looked at. */
static void long_messages(void)
{
	int i;

	for (i = 0; i < 4; i++) {
		mine[0] = (char)i;
		request(a, IBV_WR_RDMA_WRITE, 0, SIZE, 0, IBV_SEND_SIGNALED);
		done(1);
		request(a, IBV_WR_RDMA_READ, 0, SIZE, 0, IBV_SEND_SIGNALED);
		done(1);
	}
}

/* An MR that could not be ended, or changed, goes on. */
static void refused_to_end(void)
{
	struct ibv_mr *was = my_mr;
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_BIND_MW,
					.send_flags = IBV_SEND_SIGNALED };

	my_mr = ibv_reg_mr(pd, mine, SIZE, LOCAL | IBV_ACCESS_MW_BIND);
	need(my_mr && mw);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = my_mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)mine + 4096;
	wr.bind_mw.bind_info.length = 64;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	need(!ibv_post_send(a, &wr, &bad));
	done(1);
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	need(ibv_dereg_mr(my_mr) == EBUSY);
	need(ibv_rereg_mr(my_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			  IBV_ACCESS_REMOTE_WRITE));
	done(1);
	need(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(my_mr));
	my_mr = was;
}

/* ------------------------------------------------------- cases */

static void quit(int sig)
{
	(void)sig;
	_exit(EXIT_SUCCESS);
}

static void child_start(void)
{
	int s[2];

	need(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
	if (!fork()) {
		alarm(60);
		child_writes(s[1]);
		_exit(EXIT_SUCCESS);
	}
	close(s[1]);
	child_socket = s[0];
}

static void run_it(void (*fn)(void), bool is_wrong)
{
	wrong = is_wrong;
	if (fn == remote_overlap_processes)
		child_start();
	/* memory that is gone is not there for us, either */
	if (wrong && (fn == unmapped || fn == read_unmapped))
		signal(SIGSEGV, quit);
	device_open();
	pair_make(&a, &b);
	fn();
	device_close();
}

/* CASE(function, rule, how) */
#define CASES(CASE)                                                   \
	CASE(source_send, "source-changed", "send")                   \
	CASE(source_unsignaled, "source-changed", "unsignaled")       \
	CASE(source_wr_api, "source-changed", "wr_api")               \
	CASE(source_inline, "source-changed", "inline")               \
	CASE(source_dm, "source-changed", "dm")                       \
	CASE(source_open, "source-changed", "open")                   \
	CASE(source_again, "source-changed", "again")                 \
	CASE(source_reopened, "source-changed", "reopened")           \
	CASE(source_answered, "source-reused", "answered")            \
	CASE(freed_answered, "source-reused", "freed")                \
	CASE(source_freed, "memory-gone", "freed")                    \
	CASE(unmapped, "memory-gone", "unmapped")                     \
	CASE(read_unmapped, "memory-gone", "read")                    \
	CASE(recv_cleared, "receive-written", "cleared")              \
	CASE(recv_cleared_srq, "receive-written", "srq")              \
	CASE(recv_touched, "receive-touched", "behind")               \
	CASE(read_written, "fetch-written", "read")                   \
	CASE(atomic_written, "fetch-written", "atomic")               \
	CASE(recv_overlap, "targets-overlap", "receives")             \
	CASE(read_overlap, "targets-overlap", "reads")                \
	CASE(read_recv_overlap, "targets-overlap", "both")            \
	CASE(recv_shared, "targets-shared", "receives")               \
	CASE(remote_overlap, "remote-overlap", "qps")                 \
	CASE(remote_overlap_atomic, "remote-overlap", "atomic")       \
	CASE(remote_overlap_processes, "remote-overlap", "processes") \
	CASE(mr_of_receive, "receive-without-mr", "dereg")            \
	CASE(mr_of_xrc_receive, "receive-without-mr", "xrc")          \
	CASE(mr_of_other_threads, "receive-without-mr", "threads")    \
	CASE(mr_of_send, "mr-in-flight", "dereg")                     \
	CASE(mr_moved, "mr-in-flight", "rereg")                       \
	CASE(mr_on_answer, "ended-on-answer", "dereg")                \
	CASE(mw_of_bind, "mw-in-flight", "dealloc")                   \
	CASE(ah_of_send, "ah-in-flight", "destroy")                   \
	CASE(fence, "fence-missing", "read")                          \
	CASE(fence_atomic, "fence-missing", "atomic")                 \
	CASE(fence_inline, "fetch-not-done", "inline")                \
	CASE(fence_other_qp, "fetch-not-done", "qps")                 \
	CASE(write_after_read, "write-after-read", "read")            \
	CASE(write_after_atomic, "write-after-read", "atomic")        \
	CASE(read_over_source, "source-fetched", "read")              \
	CASE(recv_over_source, "source-received", "receive")          \
	CASE(one_buffer, "none", "one_buffer")                        \
	CASE(one_result, "none", "one_result")                        \
	CASE(peer_writes, "none", "peer_writes")                      \
	CASE(short_messages, "none", "short_messages")                \
	CASE(long_messages, "none", "long_messages")                  \
	CASE(refused_to_end, "none", "refused_to_end")

#define CASE(fn, rule, how)                  \
	static void case_##fn(bool is_wrong) \
	{                                    \
		run_it(fn, is_wrong);        \
	}
CASES(CASE)
#undef CASE

#define CASE(fn, rule, how) { rule "+" how, case_##fn },
static const struct test_case cases[] = { CASES(CASE){ NULL, NULL } };

int main(int argc, char **argv)
{
	return case_main(argc, argv, cases);
}
