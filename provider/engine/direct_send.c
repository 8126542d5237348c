// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "direct_pass.h"
#include "responder.h"

/* What is longer keeps the receiver's other keys in use for too long. */
#define DIRECT_SEND_MAX 4096

/* Where a SEND goes; NULL: not this way. */
static inline char *direct_sink(struct urxe_qp *qp,
				const struct next_receive *n, uint64_t len)
{
	struct urxe_region *r = &qp->direct_rx;
	struct urxe_rx *rx = &qp->conn.rx;

	if (unlikely(!len || len > DIRECT_SEND_MAX || len > n->sge.length))
		return NULL;
	if (unlikely(!region_holds(r, n->sge.lkey)) &&
	    !region_open(r, rx_peer(rx), n->sge.lkey, rx->pd,
			 IBV_ACCESS_LOCAL_WRITE, qp->conn.qpn))
		return NULL;
	return region_at(r, n->sge.addr, len);
}

static bool direct_send_one(struct urxe_qp *qp, struct direct *d,
			    const struct ibv_send_wr *wr)
{
	const struct ibv_sge *s = wr->sg_list;
	struct requester_end end;
	struct next_receive n;
	struct urxe_wqe w; /* no more than the completions tell */
	struct receipt rc;
	const char *src;
	char *dst;

	if (!responder_next(&qp->conn, &n))
		return false;
	src = direct_source(qp, d, wr);
	dst = direct_sink(qp, &n, s->length);
	if (unlikely(!src || !dst))
		return false;
	w.wr_id = wr->wr_id;
	w.length = s->length;
	w.imm = wr->imm_data;
	w.opcode = wr->opcode;
	w.flags = wr->send_flags;
	if (qp->sq.signal_all)
		w.flags |= IBV_SEND_SIGNALED;
	if (unlikely(!responder_take_next(qp, &w, &n, &rc)))
		return false;
	transfer_local(dst, src, w.length);
	requester_claim(qp, &w, &end);
	if (unlikely(end.claimed && rc.conn->rx.cq.sh == qp->scq->sh))
		responder_stand_behind(&rc, &end.ref);
	requester_finish(qp, &w, &end);
	qp->sq.begun = qp->sq.prod = qp->sq.done;
	responder_publish(&rc);
	requester_notify(qp, &end);
	responder_notify(&rc);
	return true;
}

static inline bool direct_is_send(const struct ibv_send_wr *wr)
{
	return (wr->opcode == IBV_WR_SEND ||
		wr->opcode == IBV_WR_SEND_WITH_IMM) &&
	       direct_fits(wr);
}

static struct ibv_send_wr *direct_send_pass(struct urxe_qp *qp,
					    struct ibv_send_wr *wr)
{
	struct direct d;

	direct_begin(qp, &d, GUARD_SEND);
	while (wr && direct_is_send(wr) && d.room && direct_is_heard(qp) &&
	       qp_state(qp) == IBV_QPS_RTS && direct_send_one(qp, &d, wr)) {
		wr = wr->next;
		d.room--;
	}
	direct_end(qp);
	return wr;
}

/* How often it is looked whether receives are still where we have no mapping.
 */
#define DIRECT_SEND_AGAIN 64

static inline bool direct_send_is_vain(struct urxe_qp *qp)
{
	const struct urxe_region *r = &qp->direct_rx;

	return r->key && region_is_closed(r, qp->conn.peer, r->key) &&
	       ++qp->direct_vain % DIRECT_SEND_AGAIN;
}

struct ibv_send_wr *direct_send(struct urxe_qp *qp, struct ibv_send_wr *wr)
{
	if (!direct_is_send(wr) || direct_send_is_vain(qp))
		return wr;
	return direct_send_pass(qp, wr);
}
