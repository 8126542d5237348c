/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Benchmark of a verbs device next to the limits of the machine, both
 * measured in one run.
 *
 * There are two processes, the leader and the follower, each pinned to a CPU.
 * A measurement is a function that both processes execute in step.  Only the
 * leader's result is used.  All verbs are called through unmodified
 * libibverbs.
 *
 * The leader is rank 0 and the follower is rank 1. Measurements with a single
 * process have rank 2: its QP is connected to itself.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#define BENCH_LINE 64
#define BENCH_BIG (1u << 20) /* message size of the bandwidth tests */
#define BENCH_BUF (2u << 20) /* each buffer: source, then sink */
#define BENCH_LIST 32 /* work requests in one post of the rate row */
#define BENCH_LIST_MAX 64
#define BENCH_DEPTH 256

enum buf_kind { BUF_PRIVATE, BUF_SHARED, BUF_DM, BUF_COUNT };

/* What the two ends exchange to connect */
struct end_info {
	union ibv_gid gid;
	/* Addresses of the first byte, as work requests name it */
	uint64_t addr[BUF_COUNT];
	uint32_t rkey[BUF_COUNT];
	uint32_t qpn, psn;
	uint16_t lid;
	uint8_t mtu;
	uint8_t has_dm;
	pid_t pid;
	uint64_t va; /* address of BUF_PRIVATE in process pid */
};

/* Shared memory, mapped by the parent before the fork */
struct common {
	_Alignas(BENCH_LINE) _Atomic uint64_t line[2][BENCH_LINE / 8];
	_Alignas(BENCH_LINE) _Atomic uint32_t arrived; /* barrier count */
	_Alignas(BENCH_LINE) struct end_info info[2];
	_Atomic int cpu; /* the CPU to share */
	_Atomic uint32_t wake[2]; /* futexes of raw_wake */
	_Atomic uint32_t rested; /* number of rests that the leader ended */
	/* Destinations of the raw limits' copies, one for each reader */
	_Alignas(4096) char area[2][BENCH_BIG];
};

/* One process's end of an RC connection, and its buffers */
struct end {
	int rank; /* 0 leader, 1 follower; 2: both ends in one process */
	struct common *common;
	uint32_t barrier; /* 2 * number of barriers passed */
	uint32_t rests;
	bool one_cpu; /* both ends run on one CPU: waiting yields */
	/* Operation size: bytes of a message, or WRs of a list */
	uint32_t size;
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

/* end.c: on an error, these print a message and exit */
void end_open(struct end *e, const char *device, int gid_index);
void end_connect(struct end *e);
void end_close(struct end *e);
void end_barrier(struct end *e);
/*
 * Move both processes to rank 0's CPU until end_leave_cpu().  Both must call
 * this.  Return false if the affinity cannot be set.
 */
bool end_share_cpu(struct end *e);
void end_leave_cpu(struct end *e);
/* Yield if both processes share a CPU.  For use in polling loops. */
void end_relax(const struct end *e);
/* Put the follower to sleep from its call until the leader's call. */
void end_rest(struct end *e);

/*
 * A measurement: @n operations of size e->size.  Return ns per operation, or
 * NaN if it is not possible on this machine or device.
 */
typedef double (*bench_fn)(struct end *e, uint32_t n);

/* raw.c: the machine's limits, without verbs */
double raw_line(struct end *e, uint32_t n);
double raw_memcpy(struct end *e, uint32_t n);
double raw_memcpy_pingpong(struct end *e, uint32_t n); /* shared memory */
double raw_fetch_add(struct end *e, uint32_t n);
double raw_vm_write(struct end *e, uint32_t n);
double raw_vm_pingpong(struct end *e, uint32_t n);
/* wake.c */
double raw_wake(struct end *e, uint32_t n);

/*
 * start.c: start-up time of /bin/true, without and with LD_PRELOAD of the
 * environment
 */
double raw_start(struct end *e, uint32_t n);
double start_preloaded(struct end *e, uint32_t n);

/* verbs.c; the first group uses 8 bytes, whatever the size is */
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

/* messages of 8 bytes, in lists of e->size */
double verbs_rate_write(struct end *e, uint32_t n);
double verbs_rate_send(struct end *e, uint32_t n);
double verbs_rate_send_shared(struct end *e, uint32_t n);

uint64_t bench_now(void); /* CLOCK_MONOTONIC, ns */
