/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPs of the other types on the nodes of harness.h.  turn() gives both nodes
 * of a duo new QPs of a type; everything else works as before.
 */
#pragma once

#include "harness.h"

#define QKEY 0x11111111
#define GRH 40

/* A QP of the node's CQs and caps; srq or NULL. */
struct ibv_qp *make_qp(struct node *n, enum ibv_qp_type type,
		       struct ibv_srq *srq);
/* Each step with the attributes that the type needs. */
int type_attr(struct ibv_qp_attr *attr, enum ibv_qp_type type,
	      enum ibv_qp_state to, const struct opts *o,
	      const struct addr *peer);
void type_to(struct ibv_qp *qp, enum ibv_qp_state to, const struct opts *o,
	     const struct addr *peer);
void type_connect(struct ibv_qp *qp, const struct opts *o,
		  const struct addr *peer);
void turn(struct duo *d, enum ibv_qp_type type);

/* Datagrams. */
struct ibv_ah *make_ah(struct node *n, const union ibv_gid *dgid,
		       uint8_t sgid_index);
struct ibv_send_wr ud_wr(uint64_t wr_id, struct ibv_sge *sge, int num_sge,
			 struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
int post_ud(struct node *n, uint64_t wr_id, size_t off, uint32_t len,
	    struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);

/* Shared receive queues. */
struct ibv_srq *make_srq(struct node *n, uint32_t max_wr, uint32_t max_sge);
int post_srq(struct ibv_srq *srq, struct node *n, uint64_t wr_id, size_t off,
	     uint32_t len);
int qp_recv(struct ibv_qp *qp, struct node *n, uint64_t wr_id, size_t off,
	    uint32_t len);

/*
 * Processes that are forked now, before the device is opened, and run when
 * they are released.  They see what is in a shared page.
 */
void *shared_page(void);
pid_t spawn_held(int (*fn)(void *arg), void *arg);
void release_held(void);

/* A row of the specification's table of a QP type. */
struct transition {
	enum ibv_qp_state from, to;
	int req, opt;
};
/*
 * Try every pair of states and every mask bit on QPs that make() returns and
 * that are connected with themselves; `ignored` bits are taken and not used.
 */
void check_table(struct node *n, struct ibv_qp *(*make)(struct node *n),
		 const struct transition *t, size_t count, int ignored);
