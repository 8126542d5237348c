/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The same measurements through verbs.  The first half of a buffer is the
 * source, the second half is the sink.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
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

/* A WRITE of @len bytes from private memory into the peer's buffer @kind */
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

/* Post a WR and poll its completion, @n times.  Return ns for both. */
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

/* The last 8 bytes of a message from the peer, as the program sees them */
static uint64_t sink_word(struct end *e, enum buf_kind kind)
{
	size_t at = SINK + e->size - sizeof(uint64_t);
	uint64_t v;

	if (kind != BUF_DM)
		return atomic_load_explicit(
			(_Atomic uint64_t *)(e->buf[kind] + at),
			memory_order_acquire);
	if (ibv_memcpy_from_dm(&v, e->dm, at, sizeof(v)))
		die("ibv_memcpy_from_dm", "failed");
	return v;
}

static void clear_sink(struct end *e, enum buf_kind kind)
{
	size_t at = SINK + e->size - sizeof(uint64_t);
	const uint64_t zero = 0;

	if (kind != BUF_DM)
		memset(e->buf[kind] + at, 0, sizeof(zero));
	else if (ibv_memcpy_to_dm(e->dm, at, &zero, sizeof(zero)))
		die("ibv_memcpy_to_dm", "failed");
}

/* Half the round trip of WRITEs, as ib_write_lat measures it */
static double pingpong(struct end *e, uint32_t n, enum buf_kind kind)
{
	uint64_t *word = (uint64_t *)(e->buf[BUF_PRIVATE] + e->size - 8);
	struct write_wr w;
	uint64_t i, t;

	if (missing(e, kind))
		return NAN;
	write_wr(e, &w, kind, e->size);
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
			end_relax(e);
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

/* Post @n receives in one list. */
static void post_recvs(struct end *e, enum buf_kind kind, uint32_t n)
{
	struct ibv_sge sge = {
		.addr = e->me.addr[kind] + SINK,
		.length = BENCH_BIG,
		.lkey = e->mr[kind]->lkey,
	};
	struct ibv_recv_wr wr[BENCH_DEPTH], *bad;
	uint32_t i;
	int err;

	for (i = 0; i < n; i++)
		wr[i] = (struct ibv_recv_wr){ .sg_list = &sge,
					      .num_sge = 1,
					      .next = &wr[i + 1] };
	wr[n - 1].next = NULL;
	err = ibv_post_recv(e->qp, wr, &bad);
	if (err)
		die("ibv_post_recv", strerror(err));
}

/*
 * Half the round trip of SENDs, as ib_send_lat measures it, with @ahead
 * receives posted in advance
 */
static double pingpong_send(struct end *e, uint32_t n, uint32_t ahead)
{
	struct write_wr w;
	uint64_t t;
	uint32_t i;

	if (ahead > n)
		ahead = n;
	write_wr(e, &w, BUF_PRIVATE, e->size);
	w.wr.opcode = IBV_WR_SEND;
	post_recvs(e, BUF_PRIVATE, ahead);
	end_barrier(e);
	t = bench_now();
	for (i = 0; i < n; i++) {
		if (e->rank == 0) {
			post(e, &w.wr);
			reap(e->cq);
		}
		reap(e->recv_cq);
		/* post only as many receives as messages will arrive */
		if (i + ahead < n)
			post_recvs(e, BUF_PRIVATE, 1);
		if (e->rank == 1) {
			post(e, &w.wr);
			reap(e->cq);
		}
	}
	t = bench_now() - t;
	end_barrier(e);
	return t / (2.0 * n);
}

double verbs_pingpong_send(struct end *e, uint32_t n)
{
	return pingpong_send(e, n, 1);
}

double verbs_pingpong_send_64(struct end *e, uint32_t n)
{
	return pingpong_send(e, n, 64);
}

/* The same with both processes on one CPU: a process that polls yields */
double verbs_pingpong_one_cpu(struct end *e, uint32_t n)
{
	const bool was = e->one_cpu;
	double ns;

	if (!end_share_cpu(e))
		die("sched_setaffinity", strerror(errno));
	e->one_cpu = true;
	ns = verbs_pingpong_send(e, n);
	end_leave_cpu(e);
	e->one_cpu = was;
	return ns;
}

/* WRITEs with up to 8 outstanding.  Return ns for each. */
static double stream(struct end *e, uint32_t n, enum buf_kind kind)
{
	uint32_t posted, done;
	struct write_wr w;
	uint64_t t = 0;

	if (missing(e, kind))
		return NAN;
	write_wr(e, &w, kind, e->size);
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

double verbs_stream_private(struct end *e, uint32_t n)
{
	return stream(e, n, BUF_PRIVATE);
}

double verbs_stream_shared(struct end *e, uint32_t n)
{
	return stream(e, n, BUF_SHARED);
}

double verbs_stream_dm(struct end *e, uint32_t n)
{
	return stream(e, n, BUF_DM);
}

/*
 * Messages of 8 bytes in lists.  One WR in every 32 is signaled, or one in
 * every list if lists are longer.  Up to 128 WRs are outstanding.
 */
struct lists {
	struct write_wr w[BENCH_LIST_MAX];
	uint32_t len, window; /* length of a list; WRs per signaled WR */
	uint32_t posted, done;
};

static void lists_make(struct end *e, struct lists *l, enum buf_kind kind)
{
	uint32_t i;

	l->len = e->size;
	l->window = l->len > BENCH_LIST ? l->len : BENCH_LIST;
	l->posted = l->done = 0;
	for (i = 0; i < l->len; i++) {
		write_wr(e, &l->w[i], kind, 8);
		l->w[i].wr.wr.rdma.remote_addr += 8 * i;
		l->w[i].wr.send_flags = 0;
		l->w[i].wr.next = i + 1 < l->len ? &l->w[i + 1].wr : NULL;
	}
}

static void lists_post(struct end *e, struct lists *l)
{
	bool last;

	l->posted += l->len;
	last = l->posted % l->window == 0;
	l->w[l->len - 1].wr.send_flags = last ? IBV_SEND_SIGNALED : 0;
	post(e, &l->w[0].wr);
}

static void lists_reap(struct end *e, struct lists *l, uint32_t under_way)
{
	while (l->posted - l->done > under_way) {
		reap(e->cq);
		l->done += l->window;
	}
}

/*
 * Rate of WRITEs.  @n is rounded down to a multiple of the window, so that
 * the last WR is signaled.  Return ns for each WRITE.
 */
double verbs_rate_write(struct end *e, uint32_t n)
{
	static struct lists l;
	uint64_t t = 0;

	if (missing(e, BUF_DM))
		return NAN;
	lists_make(e, &l, BUF_DM);
	n -= n % l.window;
	end_barrier(e);
	if (e->rank != 1) {
		t = bench_now();
		while (l.posted < n) {
			lists_post(e, &l);
			lists_reap(e, &l, 128 - l.len);
		}
		lists_reap(e, &l, 0);
		t = bench_now() - t;
	}
	end_barrier(e);
	return (double)t / n;
}

/*
 * The receiver of @n messages.  After every 64 receives that it posts, it
 * publishes the total number in its line, like programs with credit-based
 * flow control.
 */
static void take_sends(struct end *e, enum buf_kind kind, uint32_t n)
{
	_Atomic uint64_t *credit = &e->common->line[1][0];
	uint32_t taken = 0, posted = BENCH_DEPTH;
	struct ibv_wc wc[32];
	int i, got;

	while (taken < n) {
		got = ibv_poll_cq(e->recv_cq, 32, wc);
		for (i = 0; i < got; i++)
			if (wc[i].status != IBV_WC_SUCCESS)
				die("receive", ibv_wc_status_str(wc[i].status));
		if (got < 0)
			die("ibv_poll_cq", "failed");
		taken += (uint32_t)got;
		if (taken + BENCH_DEPTH - posted < 64 || posted >= n)
			continue;
		post_recvs(e, kind, 64);
		posted += 64;
		atomic_store_explicit(credit, posted, memory_order_release);
	}
}

/*
 * Rate of SENDs.  @n is rounded to a multiple of 64, so that each posted
 * receive is consumed.
 */
static double rate_send(struct end *e, enum buf_kind kind, uint32_t n)
{
	_Atomic uint64_t *credit = &e->common->line[1][0];
	static struct lists l;
	uint64_t t, may = BENCH_DEPTH;
	uint32_t i;

	lists_make(e, &l, BUF_PRIVATE);
	for (i = 0; i < l.len; i++)
		l.w[i].wr.opcode = IBV_WR_SEND;
	n = n < 2 * BENCH_DEPTH ? 2 * BENCH_DEPTH : n - n % 64;
	if (e->rank == 1) {
		post_recvs(e, kind, BENCH_DEPTH);
		atomic_store_explicit(credit, may, memory_order_relaxed);
	}
	end_barrier(e);
	t = bench_now();
	if (e->rank == 1)
		take_sends(e, kind, n);
	while (e->rank == 0 && l.posted < n) {
		while (may < l.posted + l.len) {
			end_relax(e);
			may = atomic_load_explicit(credit,
						   memory_order_acquire);
		}
		lists_post(e, &l);
		lists_reap(e, &l, 128 - l.len);
	}
	if (e->rank == 0)
		lists_reap(e, &l, 0);
	t = bench_now() - t;
	end_barrier(e);
	return (double)t / n;
}

double verbs_rate_send(struct end *e, uint32_t n)
{
	return rate_send(e, BUF_PRIVATE, n);
}

double verbs_rate_send_shared(struct end *e, uint32_t n)
{
	return rate_send(e, BUF_SHARED, n);
}
