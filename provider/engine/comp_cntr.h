/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion counters of QPs: man ibv_qp_attach_comp_cntr.  They count what
 * completes, with a completion in the CQ or without one.  Atomics, FLUSH and
 * what is local count nowhere: there is no bit for them.
 */
#pragma once

#include "qp.h"

void comp_cntr_add_wr(const struct urxe_qp *qp, const struct urxe_wqe *w,
		      bool failed);
void comp_cntr_add_remote(const struct urxe_conn *c, const struct urxe_wqe *w,
			  bool failed);
void comp_cntr_add_receive(const struct urxe_conn *c, const struct urxe_cqe *e);
void comp_cntr_add_flushed(const struct urxe_qp *qp, enum urxe_cntr_op op);

/* w, of our own, is complete. */
static inline void comp_cntr_wr(const struct urxe_qp *qp,
				const struct urxe_wqe *w, bool failed)
{
	if (unlikely(qp->counts))
		comp_cntr_add_wr(qp, w, failed);
}

/* An RDMA READ or WRITE was served, or refused, at the other end. */
static inline void comp_cntr_remote(const struct urxe_conn *c,
				    const struct urxe_wqe *w, bool failed)
{
	if (unlikely(load_relaxed(&c->sh->counts)))
		comp_cntr_add_remote(c, w, failed);
}

/* A receive of the other end is complete. */
static inline void comp_cntr_receive(const struct urxe_conn *c,
				     const struct urxe_cqe *e)
{
	if (unlikely(load_relaxed(&c->sh->counts)))
		comp_cntr_add_receive(c, e);
}

/* Somebody may look at the counter, and then at the bytes, and never poll. */
static inline bool comp_cntr_has_receives(const struct urxe_conn *c)
{
	return load_relaxed(&c->sh->counts) & 1u << URXE_CNTR_RECV;
}

/* Who reads counters may not poll: what a poller does for its QPs. */
void comp_cntr_progress(struct urxe_context *ctx);
