/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPs of all types on the nodes of harness.h; address handles, SRQs, and held
 * processes.  turn() replaces the QPs of a duo by QPs of another type.
 */
#pragma once

#include "harness.h"

#define QKEY 0x11111111
#define GRH 40

/* Create a QP with the node's CQs and capabilities.  @srq may be NULL. */
struct ibv_qp *make_qp(struct node *n, enum ibv_qp_type type,
		       struct ibv_srq *srq);
/*
 * Attributes and mask of a transition for QP type @type.  @peer may be NULL
 * for UD.  The function type_connect() moves a QP from RESET to RTS.
 */
int type_attr(struct ibv_qp_attr *attr, enum ibv_qp_type type,
	      enum ibv_qp_state to, const struct opts *o,
	      const struct addr *peer);
void type_to(struct ibv_qp *qp, enum ibv_qp_state to, const struct opts *o,
	     const struct addr *peer);
void type_connect(struct ibv_qp *qp, const struct opts *o,
		  const struct addr *peer);
/* Replace the QPs of both nodes by connected QPs of @type. */
void turn(struct duo *d, enum ibv_qp_type type);

/*
 * UD: make_ah() sets the flow label, hop limit and traffic class that
 * test_ud.c checks.
 */
struct ibv_ah *make_ah(struct node *n, const union ibv_gid *dgid,
		       uint8_t sgid_index);
struct ibv_send_wr ud_wr(uint64_t wr_id, struct ibv_sge *sge, int num_sge,
			 struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
int post_ud(struct node *n, uint64_t wr_id, size_t off, uint32_t len,
	    struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);

/*
 * SRQs, and qp_recv(), which posts a receive to a QP that is not n->qp.  Both
 * post functions return what the verb returns.
 */
struct ibv_srq *make_srq(struct node *n, uint32_t max_wr, uint32_t max_sge);
int post_srq(struct ibv_srq *srq, struct node *n, uint64_t wr_id, size_t off,
	     uint32_t len);
int qp_recv(struct ibv_qp *qp, struct node *n, uint64_t wr_id, size_t off,
	    uint32_t len);

/*
 * Held processes are forked before the device is opened.  They run @fn when
 * release_held() is called.  The page of shared_page(), 64 KiB, is shared
 * with processes that are forked later.
 */
void *shared_page(void);
pid_t spawn_held(int (*fn)(void *arg), void *arg);
void release_held(void);

/*
 * A row of the specification's state table: required and optional attributes.
 */
struct transition {
	enum ibv_qp_state from, to;
	int req, opt;
};
/*
 * Try every pair of states and every mask bit, on QPs that make() returns and
 * that are connected to themselves.  Bits of @ignored are accepted and have
 * no effect.
 */
void check_table(struct node *n, struct ibv_qp *(*make)(struct node *n),
		 const struct transition *t, size_t count, int ignored);
