/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An RC connection of one device, and its objects; a failed call ends the test.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define RAILS 8
#define GID_INDEX 3 /* the first address, RoCE v2 */

struct rail {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *buffer;
};

/* Print what has failed and end the program, unless @ok. */
void check(bool ok, const char *what);
/* Open @device, with a QP of depth @depth and a buffer of @bytes bytes. */
void rail_open(struct rail *r, struct ibv_device *device, uint32_t depth,
	       size_t bytes);
void rail_close(struct rail *r);
void rail_modify(struct rail *r, enum ibv_qp_state state);
void rail_init(struct rail *r);
/* A lost message is noticed after about 8 ms. */
void rail_connect(struct rail *r, uint32_t qpn, const union ibv_gid *gid);
void rail_gid(struct rail *r, union ibv_gid *gid);
