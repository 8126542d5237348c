// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Flush the receive that a partly received message of another host occupies
 * (shared/wire.h), when its QP moves to ERR, is reset or destroyed.
 *
 * The socket owner must not be inside the QP: the caller of taken_flush()
 * ensures that, and taken_flush_target() checks it by quiesce_try(). The
 * exchange of taken.there lets only one caller complete the receive.
 */
#include "comp_cntr.h"
#include "engine/run/quiesce.h"
#include "srq.h"
#include "taken.h"

static struct urxe_wire_responder *responder_of(const struct urxe_qp *qp,
						struct urxe_arena *a)
{
	return load_acquire(&qp->sh->wire) ?
		       &a->wire[qpn_index(qp->qpn)].responder :
		       NULL;
}

static void taken_complete(const struct urxe_qp *qp, struct urxe_cq_view *cq,
			   uint32_t srq, const struct urxe_wire_taken *t)
{
	struct urxe_cqe_ref ref;
	struct urxe_cqe *e;

	if (!cq_begin(cq, &ref))
		return;
	e = ref.slot.cqe;
	cqe_fill(e, t->wr_id, qp->qpn, URXE_WQE_SRQ(srq, t->ticket),
		 IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV);
	e->inline_len = URXE_CQE_SRQ;
	cq_end(cq, &ref, false);
}

void taken_flush(struct urxe_qp *qp)
{
	struct urxe_wire_responder *st = responder_of(qp, qp->ctx->arena);

	if (!st || !exchange_acq_rel(&st->taken.there, 0))
		return;
	if (unlikely(qp->counts))
		comp_cntr_add_flushed(qp, URXE_CNTR_RECV);
	qp_guard_raise(qp, GUARD_NOTHING); /* for producing into a CQ */
	taken_complete(qp, &qp->rcq->view, qp->srq->index, &st->taken);
	guard_lower(qp->guard);
}

void taken_flush_target(struct urxe_qp *qp, struct urxe_peer *p)
{
	const struct guard_thing t = { GUARD_OF_QP, p->slot, qp->qpn, 0 };
	struct urxe_wire_responder *st = responder_of(qp, p->arena);
	struct urxe_conn c = { .peer = p, .sh = qp->sh, .qpn = qp->qpn };

	if (!st || !load_acquire(&st->taken.there) ||
	    !quiesce_try(p->fabric, p->arena, &t) ||
	    !exchange_acq_rel(&st->taken.there, 0))
		return;
	peer_hold(p);
	qp_guard_raise(qp, GUARD_RECEIVE);
	if (conn_turn_to_srq(qp, &c, st->srqn) &&
	    c.rx.srq_live == st->taken.srq_live)
		taken_complete(qp, &c.rx.cq, c.rx.srq_index, &st->taken);
	guard_lower(qp->guard);
	conn_drop(&c);
}
