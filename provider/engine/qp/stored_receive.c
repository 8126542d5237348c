// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Flush the receive that a partly received message of another host occupies
 * (shared/wire.h), when its QP moves to ERR, is reset or destroyed.
 *
 * The socket owner must not be inside the QP: the caller of
 * stored_receive_flush() ensures that, and stored_receive_flush_target() checks
 * it by quiesce_try(). The exchange of receive.valid lets only one caller
 * complete the receive.
 */
#include "comp_cntr.h"
#include "engine/run/quiesce.h"
#include "srq.h"
#include "stored_receive.h"

static struct urxe_wire_responder *responder_of(const struct urxe_qp *qp,
						struct urxe_arena *a)
{
	return load_acquire(&qp->sh->wire) ?
		       &a->wire[qpn_index(qp->qpn)].responder :
		       NULL;
}

static void stored_receive_complete(const struct urxe_qp *qp,
				    struct urxe_cq_view *cq, uint32_t srq,
				    const struct urxe_stored_receive *t)
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

void stored_receive_flush(struct urxe_qp *qp)
{
	struct urxe_wire_responder *st = responder_of(qp, qp->ctx->arena);

	if (!st || !exchange_acq_rel(&st->receive.valid, 0))
		return;
	if (unlikely(qp->counts))
		comp_cntr_add_flushed(qp, URXE_CNTR_RECV);
	qp_guard_raise(qp, GUARD_NOTHING); /* for producing into a CQ */
	stored_receive_complete(qp, &qp->rcq->view, qp->srq->index,
				&st->receive);
	guard_lower(qp->guard);
}

void stored_receive_flush_target(struct urxe_qp *qp, struct urxe_peer *p)
{
	const struct guard_object t = { GUARD_OF_QP, p->slot, qp->qpn, 0 };
	struct urxe_wire_responder *st = responder_of(qp, p->arena);
	struct urxe_conn c = { .peer = p, .sh = qp->sh, .qpn = qp->qpn };

	if (!st || !load_acquire(&st->receive.valid) ||
	    !quiesce_try(p->fabric, p->arena, &t) ||
	    !exchange_acq_rel(&st->receive.valid, 0))
		return;
	peer_hold(p);
	qp_guard_raise(qp, GUARD_RECEIVE);
	if (conn_use_srq(qp, &c, st->srqn) &&
	    c.rx.srq_live == st->receive.srq_live)
		stored_receive_complete(qp, &c.rx.cq, c.rx.srq_index,
					&st->receive);
	guard_lower(qp->guard);
	conn_drop(&c);
}
