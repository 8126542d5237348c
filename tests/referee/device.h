/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A device with two QPs that are connected to each other, for most cases */
#pragma once

#include <stdio.h>
#include <stdlib.h>

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

extern bool wrong;
extern struct ibv_context *ctx;
extern struct ibv_pd *pd;
extern struct ibv_cq *cq, *rcq; /* of sends, of receives */
extern struct ibv_srq *srq;
extern union ibv_gid gid;
/* memory without remote access; memory that peers read and write */
extern char *mine, *theirs;
extern struct ibv_mr *my_mr, *their_mr;
/* a sends to b */
extern struct ibv_qp *a, *b;
extern struct ibv_qp *qps[8];
extern int num_qps;

void device_open(void);
void device_close(void);
struct ibv_qp *qp_make(enum ibv_qp_type type);
void qp_receives(struct ibv_qp *qp, uint32_t dest);
void qp_connect(struct ibv_qp *qp, uint32_t dest);
void pair_make(struct ibv_qp **one, struct ibv_qp **other);
struct ibv_sge sge_of(size_t at, uint32_t len);
void receive(size_t at, uint32_t len);
/* Post a WR between offset @at of mine and offset @remote of theirs. */
void request(struct ibv_qp *qp, enum ibv_wr_opcode op, size_t at, uint32_t len,
	     size_t remote, unsigned int flags);
/* Poll @n successful completions of @of, and all that @other has. */
void done_of(struct ibv_cq *of, struct ibv_cq *other, int n);
void done(int n);
void received(int n);

struct device_case {
	const char *name;
	void (*run)(void); /* called with an open device and connected QPs */
	void (*before)(void); /* called before the device is opened, or NULL */
};

#define DEVICE_CASE(name, run) { name, run, NULL }

/* case_main() for such cases; `wrong` selects the buggy version. */
int device_main(int argc, char **argv, const struct device_case *cases);
