/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs as libibverbs sees them. */
#pragma once

#include "abi/pabi/pabi.h"
#include "engine/qp/qp.h"

/*
 * State between ibv_wr_start and ibv_wr_complete (qp_ex.c), under the QP's
 * lock.  The members batch_* of struct urxe_qp belong to it as well.
 */
struct urxe_wr_batch {
	struct urxe_wqe *wqe; /* being built, not yet counted in sq.prod */
	int error; /* first error, errno value: nothing will be posted */
	bool needs_dest; /* the destination must still be set */
	bool needs_data; /* a data setter may still be called */
};

struct urxe_vcntr;

struct urxe_vqp {
	struct pabi_qp v;
	struct urxe_qp qp;
	uint64_t tag; /* of its events; shared/event_tag.h */
	struct urxe_wr_batch batch;
	struct urxe_pd *pd; /* NULL: an XRC target */
	bool custom_sq; /* the PD's allocator allocated the SQ's ring */
	struct urxe_xrcd *xrcd; /* XRC target: its domain, else NULL */
	struct urxe_peer *opened; /* ibv_open_qp: its context, or NULL */
	_Atomic uint32_t mcast_groups; /* number of groups attached to */
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

/* Return whether @qp->handle, which the program can write, is unchanged. */
static inline bool qp_is_named(struct ibv_qp *qp)
{
	return qp->handle == qpn_index(to_uqp(qp)->qpn);
}

/*
 * Create a QP, for all verbs that do.  init->comp_mask says which members are
 * valid; init->cap is updated.  NULL and errno on failure.
 */
struct ibv_qp *vqp_create(struct ibv_context *ctx,
			  struct ibv_qp_init_attr_ex *init);
/* The opcodes that QPs of a type support on the context's device: WQE_BIT(). */
uint32_t qp_ops(const struct urxe_context *ctx, enum ibv_qp_type type);
/*
 * Set the public members that libibverbs leaves to the provider: context,
 * number, type, state, lock, XRC domain.
 */
void vqp_fill(struct urxe_vqp *qp, struct ibv_context *ctx,
		   void *qp_context, uint32_t qpn);
