/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The same, through verbs.  Sources lie in the first half of a buffer, sinks
 * in the second. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define SINK BENCH_BIG

static void __attribute__((noreturn)) die(const char *what, const char *why)
{
	fprintf(stderr, "urxe-bench: %s: %s\n", what, why);
	exit(1);
}

static void post(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(e->qp, wr, &bad);

	if (err)
		die("ibv_post_send", strerror(err));
}

/* Wait for one completion. */
static void reap(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (n == 0);
	if (n < 0)
		die("ibv_poll_cq", "failed");
	if (wc.status != IBV_WC_SUCCESS)
		die("completion", ibv_wc_status_str(wc.status));
}

/* A WRITE of len bytes from private memory into the peer's buffer `kind`. */
struct write_wr {
	struct ibv_sge sge;
	struct ibv_send_wr wr;
};

static void write_wr(struct end *e, struct write_wr *w, enum buf_kind kind,
		     uint32_t len)
{
	memset(w, 0, sizeof(*w));
	w->sge.addr = e->me.addr[BUF_PRIVATE];
	w->sge.length = len;
	w->sge.lkey = e->mr[BUF_PRIVATE]->lkey;
	w->wr.sg_list = &w->sge;
	w->wr.num_sge = 1;
	w->wr.opcode = IBV_WR_RDMA_WRITE;
	w->wr.send_flags = IBV_SEND_SIGNALED;
	w->wr.wr.rdma.remote_addr = e->peer.addr[kind] + SINK;
	w->wr.wr.rdma.rkey = e->peer.rkey[kind];
}

static bool missing(struct end *e, enum buf_kind kind)
{
	return kind == BUF_DM && (!e->me.has_dm || !e->peer.has_dm);
}

/* post_send and poll_cq, one after the other: ns for both. */
static double one_by_one(struct end *e, uint32_t n, struct ibv_send_wr *wr)
{
	uint64_t t = 0;
	uint32_t i;

	end_barrier(e);
	if (e->rank != 1) {
		t = bench_now();
		for (i = 0; i < n; i++) {
			post(e, wr);
			reap(e->cq);
		}
		t = bench_now() - t;
	}
	end_barrier(e);
	return (double)t / n;
}

static double write_n(struct end *e, uint32_t n, enum buf_kind kind)
{
	struct write_wr w;

	if (missing(e, kind))
		return NAN;
	write_wr(e, &w, kind, 8);
	return one_by_one(e, n, &w.wr);
}

double verbs_write_private(struct end *e, uint32_t n)
{
	return write_n(e, n, BUF_PRIVATE);
}

double verbs_write_dm(struct end *e, uint32_t n)
{
	return write_n(e, n, BUF_DM);
}

static double atomic_n(struct end *e, uint32_t n, enum buf_kind kind)
{
	struct write_wr w;

	if (missing(e, kind))
		return NAN;
	write_wr(e, &w, kind, 8);
	w.wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	w.wr.wr.atomic.remote_addr = e->peer.addr[kind] + SINK;
	w.wr.wr.atomic.compare_add = 1;
	w.wr.wr.atomic.rkey = e->peer.rkey[kind];
	return one_by_one(e, n, &w.wr);
}

double verbs_atomic_private(struct end *e, uint32_t n)
{
	return atomic_n(e, n, BUF_PRIVATE);
}

double verbs_atomic_dm(struct end *e, uint32_t n)
{
	return atomic_n(e, n, BUF_DM);
}

/* The 8 bytes that the peer writes, as the program sees them. */
static uint64_t sink_word(struct end *e, enum buf_kind kind)
{
	uint64_t v;

	if (kind != BUF_DM)
		return atomic_load_explicit(
			(_Atomic uint64_t *)(e->buf[kind] + SINK),
			memory_order_acquire);
	if (ibv_memcpy_from_dm(&v, e->dm, SINK, sizeof(v)))
		die("ibv_memcpy_from_dm", "failed");
	return v;
}

static void clear_sink(struct end *e, enum buf_kind kind)
{
	const uint64_t zero = 0;

	if (kind != BUF_DM)
		memset(e->buf[kind] + SINK, 0, sizeof(zero));
	else if (ibv_memcpy_to_dm(e->dm, SINK, &zero, sizeof(zero)))
		die("ibv_memcpy_to_dm", "failed");
}

/* Half the round trip of 8-byte WRITEs, as ib_write_lat measures it. */
static double pingpong(struct end *e, uint32_t n, enum buf_kind kind)
{
	uint64_t *word = (uint64_t *)e->buf[BUF_PRIVATE];
	struct write_wr w;
	uint64_t i, t;

	if (missing(e, kind))
		return NAN;
	write_wr(e, &w, kind, 8);
	clear_sink(e, kind);
	end_barrier(e);
	t = bench_now();
	for (i = 1; i <= n; i++) {
		*word = i;
		if (e->rank == 0) {
			post(e, &w.wr);
			reap(e->cq);
		}
		while (sink_word(e, kind) != i)
			;
		if (e->rank == 1) {
			post(e, &w.wr);
			reap(e->cq);
		}
	}
	t = bench_now() - t;
	end_barrier(e);
	return t / (2.0 * n);
}

double verbs_pingpong_private(struct end *e, uint32_t n)
{
	return pingpong(e, n, BUF_PRIVATE);
}

double verbs_pingpong_shared(struct end *e, uint32_t n)
{
	return pingpong(e, n, BUF_SHARED);
}

double verbs_pingpong_dm(struct end *e, uint32_t n)
{
	return pingpong(e, n, BUF_DM);
}

static void post_recv(struct end *e)
{
	struct ibv_sge sge = {
		.addr = e->me.addr[BUF_PRIVATE] + SINK,
		.length = 8,
		.lkey = e->mr[BUF_PRIVATE]->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(e->qp, &wr, &bad);

	if (err)
		die("ibv_post_recv", strerror(err));
}

/* Half the round trip of 8-byte SENDs, as ib_send_lat measures it. */
double verbs_pingpong_send(struct end *e, uint32_t n)
{
	struct write_wr w;
	uint64_t t;
	uint32_t i;

	write_wr(e, &w, BUF_PRIVATE, 8);
	w.wr.opcode = IBV_WR_SEND;
	post_recv(e);
	end_barrier(e);
	t = bench_now();
	for (i = 0; i < n; i++) {
		if (e->rank == 0) {
			post(e, &w.wr);
			reap(e->cq);
		}
		reap(e->recv_cq);
		/* in the last round nothing comes any more */
		if (i + 1 < n)
			post_recv(e);
		if (e->rank == 1) {
			post(e, &w.wr);
			reap(e->cq);
		}
	}
	t = bench_now() - t;
	end_barrier(e);
	return t / (2.0 * n);
}

/* The same with one CPU for both: each polls until the other one may run. */
double verbs_pingpong_one_cpu(struct end *e, uint32_t n)
{
	cpu_set_t before, one;
	double ns;

	if (e->rank == 0)
		atomic_store_explicit(&e->common->cpu, sched_getcpu(),
				      memory_order_relaxed);
	end_barrier(e);
	CPU_ZERO(&one);
	CPU_SET(atomic_load_explicit(&e->common->cpu, memory_order_relaxed),
		&one);
	if (sched_getaffinity(0, sizeof(before), &before) ||
	    sched_setaffinity(0, sizeof(one), &one))
		die("sched_setaffinity", strerror(errno));
	ns = verbs_pingpong_send(e, n);
	sched_setaffinity(0, sizeof(before), &before);
	return ns;
}

/* WRITEs of 1 MiB, up to 8 under way: ns for each. */
static double big(struct end *e, uint32_t n, enum buf_kind kind)
{
	uint32_t posted, done;
	struct write_wr w;
	uint64_t t = 0;

	if (missing(e, kind))
		return NAN;
	write_wr(e, &w, kind, BENCH_BIG);
	end_barrier(e);
	if (e->rank != 1) {
		t = bench_now();
		for (posted = done = 0; done < n; done++) {
			for (; posted < n && posted - done < 8; posted++)
				post(e, &w.wr);
			reap(e->cq);
		}
		t = bench_now() - t;
	}
	end_barrier(e);
	return (double)t / n;
}

double verbs_big_private(struct end *e, uint32_t n)
{
	return big(e, n, BUF_PRIVATE);
}

double verbs_big_shared(struct end *e, uint32_t n)
{
	return big(e, n, BUF_SHARED);
}

double verbs_big_dm(struct end *e, uint32_t n)
{
	return big(e, n, BUF_DM);
}

/*
 * 8-byte WRITEs posted in lists of 32 with the last one signaled, up to four
 * lists under way: ns for each WRITE.
 */
double verbs_rate_dm(struct end *e, uint32_t n)
{
	uint32_t lists = (n + BENCH_LIST - 1) / BENCH_LIST, posted, done, i;
	struct write_wr w[BENCH_LIST];
	uint64_t t = 0;

	if (missing(e, BUF_DM))
		return NAN;
	for (i = 0; i < BENCH_LIST; i++) {
		write_wr(e, &w[i], BUF_DM, 8);
		w[i].wr.wr.rdma.remote_addr += 8 * i;
		w[i].wr.send_flags = i == BENCH_LIST - 1 ? IBV_SEND_SIGNALED
							 : 0;
		w[i].wr.next = i == BENCH_LIST - 1 ? NULL : &w[i + 1].wr;
	}
	end_barrier(e);
	if (e->rank != 1) {
		t = bench_now();
		for (posted = done = 0; done < lists; done++) {
			for (; posted < lists && posted - done < 4; posted++)
				post(e, &w[0].wr);
			reap(e->cq);
		}
		t = bench_now() - t;
	}
	end_barrier(e);
	return (double)t / ((double)lists * BENCH_LIST);
}
