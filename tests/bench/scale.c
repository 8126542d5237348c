/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * urxe-bench-scale: cost of verbs calls as the number of QPs or contexts
 * grows, and the memory that a QP takes.
 *
 *   urxe run -- taskset -c 1 urxe-bench-scale
 *
 * It is one process.  It creates pairs of idle QPs with 16 send and 16
 * receive WRs each.  Among these it creates, connects and destroys further
 * pairs, and registers memory.  Then it opens and closes the device while it
 * has other contexts open.  It prints medians.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

#define WRS 16
#define ROUNDS 301
#define MOST 4000
#define MOST_CONTEXTS 200

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static union ibv_gid gid;
static char buf[4096] __attribute__((aligned(4096)));
static struct ibv_qp *qp[MOST + 2];

static void check(int err, const char *what)
{
	if (!err)
		return;
	perror(what);
	exit(1);
}

static struct ibv_qp *qp_make(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = WRS,
			 .max_recv_wr = WRS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *q = ibv_create_qp(pd, &init);

	check(!q, "ibv_create_qp");
	return q;
}

static void qp_connect(struct ibv_qp *q, uint32_t dest)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	check(ibv_modify_qp(q, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS),
	      "INIT");
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = dest,
				  .min_rnr_timer = 12,
				  .ah_attr = { .is_global = 1,
					       .port_num = 1,
					       .grh = { .dgid = gid,
							.sgid_index = 1,
							.hop_limit = 1 } } };
	check(ibv_modify_qp(q, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	      "RTR");
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7 };
	check(ibv_modify_qp(q, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC),
	      "RTS");
}

static void pair_make(struct ibv_qp *q[2])
{
	q[0] = qp_make();
	q[1] = qp_make();
	qp_connect(q[0], q[1]->qp_num);
	qp_connect(q[1], q[0]->qp_num);
}

/* Destroy QPs, the oldest first.  Return us per QP. */
static double all_end(int n)
{
	uint64_t t = bench_now();
	int i;

	for (i = 0; i < n; i++)
		check(ibv_destroy_qp(qp[i]), "ibv_destroy_qp");
	return (bench_now() - t) / 1e3 / n;
}

static void post(struct ibv_qp *q)
{
	struct ibv_sge sge = { (uintptr_t)buf, 8, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)buf + 64,
					       mr->rkey } };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	check(ibv_post_send(q, &wr, &bad), "ibv_post_send");
	check(ibv_poll_cq(cq, 1, &wc) != 1 || wc.status, "ibv_poll_cq");
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v, int n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

static void row(int others)
{
	static double make[ROUNDS], end[ROUNDS], reg[ROUNDS], dereg[ROUNDS];
	struct ibv_qp *q[2];
	uint64_t t[6];
	double one, all;
	int i, n = others ? others : 2;

	for (i = 0; i < ROUNDS; i++) {
		struct ibv_mr *m;

		t[0] = bench_now();
		pair_make(q);
		t[1] = bench_now();
		m = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
		check(!m, "ibv_reg_mr");
		t[2] = bench_now();
		check(ibv_dereg_mr(m), "ibv_dereg_mr");
		t[3] = bench_now();
		post(q[0]);
		t[4] = bench_now();
		ibv_destroy_qp(q[0]);
		ibv_destroy_qp(q[1]);
		t[5] = bench_now();
		make[i] = t[1] - t[0];
		reg[i] = t[2] - t[1];
		dereg[i] = t[3] - t[2];
		end[i] = (t[5] - t[4]) / 2.0;
	}
	if (!others)
		pair_make(qp);
	for (i = 0; i < 100 * n; i++)
		post(qp[i % n]);
	t[0] = bench_now();
	for (i = 0; i < 200000; i++)
		post(qp[0]);
	t[1] = bench_now();
	one = (t[1] - t[0]) / 200000.0;
	t[0] = bench_now();
	for (i = 0; i < 200000; i++)
		post(qp[i % n]);
	t[1] = bench_now();
	all = (t[1] - t[0]) / 200000.0;
	printf("%6d %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f\n", others,
	       median(make, ROUNDS) / 1e3, median(end, ROUNDS) / 1e3,
	       median(reg, ROUNDS) / 1e3, median(dereg, ROUNDS) / 1e3, one,
	       all);
	if (!others) {
		ibv_destroy_qp(qp[0]);
		ibv_destroy_qp(qp[1]);
	}
	fflush(stdout);
}

/* Size of the context's arena, in bytes */
static double shared_bytes(void)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", ctx->cmd_fd);
	check(stat(path, &st), "stat");
	return st.st_blocks * 512.0;
}

static double private_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)m.uordblks + m.hblkhd;
}

static void opening(struct ibv_device *device)
{
	static const int counts[] = { 1, 16, MOST_CONTEXTS };
	static struct ibv_context *other[MOST_CONTEXTS];
	static double begin[ROUNDS], end[ROUNDS];
	struct ibv_context *c;
	int i, have = 1; /* ctx */
	uint64_t t[3];
	size_t k;

	printf("%10s %10s %10s\n", "contexts", "open us", "close us");
	for (k = 0; k < sizeof(counts) / sizeof(*counts); k++) {
		for (; have < counts[k]; have++) {
			other[have] = ibv_open_device(device);
			check(!other[have], "ibv_open_device");
		}
		for (i = 0; i < ROUNDS; i++) {
			t[0] = bench_now();
			c = ibv_open_device(device);
			t[1] = bench_now();
			check(!c, "ibv_open_device");
			ibv_close_device(c);
			t[2] = bench_now();
			begin[i] = t[1] - t[0];
			end[i] = t[2] - t[1];
		}
		printf("%10d %10.1f %10.1f\n", have,
		       median(begin, ROUNDS) / 1e3, median(end, ROUNDS) / 1e3);
	}
	while (have > 1)
		ibv_close_device(other[--have]);
}

int main(void)
{
	static const int counts[] = { 0, 16, 256, MOST };
	double shared, private;
	struct ibv_device **list;
	int i, have = 0;
	size_t c;

	list = ibv_get_device_list(NULL);
	check(!list || !list[0], "no device");
	ctx = ibv_open_device(list[0]);
	check(!ctx, "ibv_open_device");
	check(ibv_query_gid(ctx, 1, 1, &gid), "ibv_query_gid");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 256, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, buf, sizeof(buf),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(!pd || !cq || !mr, "objects");
	printf("%6s %10s %10s %10s %10s %10s %10s\n", "QPs", "pair us",
	       "destroy us", "reg us", "dereg us", "WRITE ns", "of all ns");
	for (c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
		shared = shared_bytes();
		private = private_bytes();
		for (i = have; i < counts[c]; i += 2)
			pair_make(&qp[i]);
		if (counts[c] == MOST)
			printf("a QP has %.0f bytes of shared memory, %.0f of its process\n",
			       (shared_bytes() - shared) / (MOST - have),
			       (private_bytes() - private) / (MOST - have));
		have = counts[c];
		row(have);
	}
	printf("all of them destroyed, the oldest first: %.1f us each\n",
	       all_end(have));
	opening(list[0]);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	ibv_free_device_list(list);
	return 0;
}
