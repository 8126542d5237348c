/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Figures of a verbs device beside the limits of the machine, both measured
 * in one run.
 *
 * Two processes, the leader and the follower, each pinned to a CPU.  A
 * measurement is a function that both run in step; the leader's result is
 * what counts.  Every verb here is stock libibverbs.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#define BENCH_LINE 64
#define BENCH_BIG (1u << 20) /* the message of the bandwidth tests */
#define BENCH_BUF (2u << 20) /* each buffer: source, then sink */
#define BENCH_LIST 32 /* work requests in one post of the rate row */
#define BENCH_LIST_MAX 64
#define BENCH_DEPTH 256

enum buf_kind { BUF_PRIVATE, BUF_SHARED, BUF_DM, BUF_COUNT };

/* What one side tells the other. */
struct end_info {
	union ibv_gid gid;
	uint64_t addr[BUF_COUNT]; /* what work requests call the first byte */
	uint32_t rkey[BUF_COUNT];
	uint32_t qpn, psn;
	uint16_t lid;
	uint8_t mtu;
	uint8_t has_dm;
	pid_t pid;
	uint64_t va; /* of BUF_PRIVATE in process pid */
};

/* Mapped by both processes before the fork. */
struct common {
	_Alignas(BENCH_LINE) _Atomic uint64_t line[2][BENCH_LINE / 8];
	_Alignas(BENCH_LINE) _Atomic uint32_t arrived; /* the barrier */
	_Alignas(BENCH_LINE) struct end_info info[2];
	_Atomic int cpu; /* that both are to share */
	_Atomic uint32_t wake[2]; /* futexes of raw_wake */
	_Atomic uint32_t rested; /* how often the leader ended a rest */
	/* What raw limits copy into, one for each reader. */
	_Alignas(4096) char area[2][BENCH_BIG];
};

/* One process's end of an RC connection and its buffers. */
struct end {
	int rank; /* 0 leader, 1 follower; 2: both ends in one process */
	struct common *common;
	uint32_t barrier; /* how many were passed */
	uint32_t rests;
	bool one_cpu; /* for both: who waits lets the other one run */
	uint32_t size; /* what is measured: bytes of a message, or WRs of a list
			*/
	int gid_index;
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	struct ibv_cq *cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_dm *dm; /* NULL: the device has none */
	char *buf[BUF_COUNT]; /* NULL for BUF_DM */
	struct ibv_mr *mr[BUF_COUNT];
	struct end_info me, peer;
};

/* end.c: exit with a message on any error */
void end_open(struct end *e, const char *device, int gid_index);
void end_connect(struct end *e);
void end_close(struct end *e);
void end_barrier(struct end *e);
/* Both are on the CPU of rank 0 until they leave it.  False: they may not. */
bool end_share_cpu(struct end *e);
void end_leave_cpu(struct end *e);
/* Who waits in a loop calls this. */
void end_relax(const struct end *e);
/* The follower sleeps from its call until the leader's. */
void end_rest(struct end *e);

/*
 * A measurement: n operations of e->size.  Returns ns per operation, or NaN
 * when it is not possible here.
 */
typedef double (*bench_fn)(struct end *e, uint32_t n);

/* raw.c: no verbs; the machine's limits */
double raw_line(struct end *e, uint32_t n);
double raw_memcpy(struct end *e, uint32_t n);
double raw_memcpy_pingpong(struct end *e, uint32_t n); /* shared memory */
double raw_fetch_add(struct end *e, uint32_t n);
double raw_vm_write(struct end *e, uint32_t n);
double raw_vm_pingpong(struct end *e, uint32_t n);
/* wake.c */
double raw_wake(struct end *e, uint32_t n);

/* start.c: /bin/true, as it is and with what LD_PRELOAD names here */
double raw_start(struct end *e, uint32_t n);
double start_preloaded(struct end *e, uint32_t n);

/* verbs.c; those of the first group are of 8 bytes, whatever the size */
double verbs_write_private(struct end *e, uint32_t n);
double verbs_write_dm(struct end *e, uint32_t n);
double verbs_atomic_private(struct end *e, uint32_t n);
double verbs_atomic_dm(struct end *e, uint32_t n);

double verbs_pingpong_private(struct end *e, uint32_t n);
double verbs_pingpong_shared(struct end *e, uint32_t n);
double verbs_pingpong_dm(struct end *e, uint32_t n);
double verbs_pingpong_send(struct end *e, uint32_t n);
double verbs_pingpong_send_64(struct end *e, uint32_t n);
double verbs_pingpong_one_cpu(struct end *e, uint32_t n);

double verbs_stream_private(struct end *e, uint32_t n);
double verbs_stream_shared(struct end *e, uint32_t n);
double verbs_stream_dm(struct end *e, uint32_t n);

/* of 8 bytes, in lists of e->size */
double verbs_rate_write(struct end *e, uint32_t n);
double verbs_rate_send(struct end *e, uint32_t n);
double verbs_rate_send_shared(struct end *e, uint32_t n);

uint64_t bench_now(void); /* ns */
