/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion counters of QPs: man ibv_qp_attach_comp_cntr.  A counter counts
 * operations that complete, whether or not they generate a CQE.  Atomics,
 * FLUSH and local operations (BIND_MW, LOCAL_INV) are not counted, as the
 * verb has no bit for them.
 *
 * The requester calls these functions for both ends; the counters are in the
 * arena of the QP that they are attached to.  The out-of-line functions are
 * the slow paths of the inline ones, for QPs that have a counter.
 */
#pragma once

#include "qp.h"

void comp_cntr_add_wr(const struct urxe_qp *qp, const struct urxe_wqe *w,
		      bool failed);
void comp_cntr_add_remote(const struct urxe_conn *c, const struct urxe_wqe *w,
			  bool failed);
void comp_cntr_add_receive(const struct urxe_conn *c, const struct urxe_cqe *e);
void comp_cntr_add_flushed(const struct urxe_qp *qp, enum urxe_cntr_op op);

/* Count w, a WR of qp that completes. */
static inline void comp_cntr_wr(const struct urxe_qp *qp,
				const struct urxe_wqe *w, bool failed)
{
	if (unlikely(qp->counts))
		comp_cntr_add_wr(qp, w, failed);
}

/* Count an RDMA READ or WRITE that the responder served or refused. */
static inline void comp_cntr_remote(const struct urxe_conn *c,
				    const struct urxe_wqe *w, bool failed)
{
	if (unlikely(load_relaxed(&c->sh->counts)))
		comp_cntr_add_remote(c, w, failed);
}

/* Count a receive WR of the responder that completes. */
static inline void comp_cntr_receive(const struct urxe_conn *c,
				     const struct urxe_cqe *e)
{
	if (unlikely(load_relaxed(&c->sh->counts)))
		comp_cntr_add_receive(c, e);
}

/*
 * Does a counter count the responder's receives?  Its program may then read
 * the counter and the received bytes without polling the CQ.
 */
static inline bool comp_cntr_has_receives(const struct urxe_conn *c)
{
	return load_relaxed(&c->sh->counts) & 1u << URXE_CNTR_RECV;
}
