/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs, as libibverbs has them. */
#pragma once

#include "abi/pabi/pabi.h"
#include "engine/qp.h"

/* ibv_wr_start ... ibv_wr_complete; qp_ex.c, and batch_* of struct urxe_qp */
struct urxe_wr_batch {
	struct urxe_wqe *wqe; /* being built, not yet counted in sq.prod */
	int error; /* the first one: nothing will be posted */
	bool needs_dest; /* the QP type's setter was not called yet */
	bool needs_data; /* a data setter may be called */
};

struct urxe_vcntr;

struct urxe_vqp {
	struct pabi_qp v;
	struct urxe_qp qp;
	uint64_t tag; /* of its events */
	struct urxe_wr_batch batch;
	struct urxe_pd *pd; /* NULL: an XRC target */
	bool custom_sq; /* the SQ's ring is of the PD's own allocator */
	struct urxe_xrcd *xrcd; /* of an XRC target */
	struct urxe_peer *opened; /* ibv_open_qp: the context it lives in */
	_Atomic uint32_t mcast_groups; /* it is attached to */
	struct urxe_vcntr *cntr[URXE_CNTR_OPS]; /* NULL: none */
	struct ibv_qp_init_attr init;
};

static inline struct urxe_vqp *to_vqp(struct ibv_qp *qp)
{
	return container_of(qp, struct urxe_vqp, v.qp);
}

static inline struct urxe_qp *to_uqp(struct ibv_qp *qp)
{
	return &to_vqp(qp)->qp;
}

/* Return whether the program left @qp->handle as it was. */
static inline bool qp_is_named(struct ibv_qp *qp)
{
	return qp->handle == qpn_index(to_uqp(qp)->qpn);
}

/* All creating verbs; init->comp_mask says what is there. */
struct ibv_qp *vqp_create(struct ibv_context *ctx,
			  struct ibv_qp_init_attr_ex *init);
/* The public half, which core leaves to us: number, type, state, domain. */
void vqp_fill(struct urxe_vqp *qp, struct ibv_context *ctx,
		   void *qp_context, uint32_t qpn);
