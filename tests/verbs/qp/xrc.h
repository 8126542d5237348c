/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Helpers of the XRC tests: domains, XRC SRQs, target QPs, and requests. */
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../types.h"

/* ibv_open_xrcd with the file @fd, or -1 for a domain without a file. */
static inline struct ibv_xrcd *open_xrcd(struct ibv_context *ctx, int fd,
					 int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return ibv_open_xrcd(ctx, &attr);
}

/* Create an XRC SRQ of the node's PD and receive CQ. */
static inline struct ibv_srq *make_xsrq(struct node *n, struct ibv_xrcd *xrcd,
					uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = n,
		.attr = { .max_wr = max_wr, .max_sge = max_sge },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = n->pd,
		.xrcd = xrcd,
		.cq = n->rcq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(n->ctx, &attr);

	ck_nonnull(srq);
	return srq;
}

/* The number of an XRC SRQ. */
static inline uint32_t srqn(struct ibv_srq *srq)
{
	uint32_t number;

	ck_ok(ibv_get_srq_num(srq, &number));
	return number;
}

/* Create a target QP (IBV_QPT_XRC_RECV). */
static inline struct ibv_qp *make_target(struct node *n, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = n,
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(n->ctx, &attr);

	ck_nonnull(qp);
	return qp;
}

/* Open a target QP by number; NULL and errno if that fails. */
static inline struct ibv_qp *open_target(struct ibv_context *ctx,
					 struct ibv_xrcd *xrcd, uint32_t qpn)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_context = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(ctx, &attr);
}

/* A new file, for a domain of its own. */
static inline int new_file(void)
{
	int fd = memfd_create("domain", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* Post a request from a's buffer to b's, for SRQ @number. */
static inline void post_x(struct duo *d, enum ibv_wr_opcode op, uint64_t wr_id,
			  uint32_t len, size_t b_off, uint32_t number)
{
	struct ibv_sge sge = node_sge(&d->a, 0, len);
	struct ibv_send_wr wr = rdma_wr(d, op, wr_id, &sge, 1, b_off);

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = d->at_b.base + b_off;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.rkey = d->at_b.rkey;
	}
	wr.qp_type.xrc.remote_srqn = number;
	ck_ok(post_wr(d->a.qp, &wr));
}
