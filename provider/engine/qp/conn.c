// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections: remote QPs as a requester sees them.
 *
 * A struct urxe_conn is a cached view of a remote QP: its context, its shared
 * state, and the receive queue that it takes receives from (struct urxe_rx).
 * conn_open() resolves it, conn_ready() and conn_accepts_datagram() check it
 * before each request, conn_drop() gives it back.  conn_break() is what a NAK
 * does to the remote QP.
 *
 * Callers are the requester, with qp->lock held, and the wire server for
 * requests of other hosts.  The guard is raised and names the QP before its
 * connection word is loaded.  A destroyer changes the word (seq_cst) and then
 * waits for the guards, so a QP that was found does not go away while the
 * guard is raised (Dekker handshake, base/presence.h, tests/model/guard.pml).
 *
 * sh->conn contains both QPNs and the state of the remote QP.  It differs
 * from c->want if the QP was destroyed or is connected to another QP.  QPNs
 * are reused; conn_qpn_is_reused() detects that.  If the remote QP does not
 * exist, its process died or it is not in RTR, RTS, SQD or SQE, the response
 * is RESP_SILENCE, and the requester's timers decide.
 */
#include "conn.h"
#include "counters.h"
#include "engine/cq/event.h"
#include "flush.h"
#include "engine/core/log.h"
#include "engine/mem/peer.h"
#include "qp.h"
#include "engine/run/service.h"
#include "why.h"
#include "wqe.h"

/* Close the view and drop the reference to the peer that it holds. */
static void rx_close(struct urxe_rx *rx)
{
	cq_view_fini(&rx->cq);
	if (rx->cq.peer)
		peer_put(rx->cq.peer);
	rx->cq.peer = NULL;
}

void conn_drop(struct urxe_conn *c)
{
	if (!c->peer)
		return;
	rx_close(&c->rx);
	peer_put(c->peer);
	c->peer = NULL;
	c->direct = false;
	c->sh = NULL;
	c->srqn = 0;
}

void conn_check(struct urxe_conn *c)
{
	/* seq_cst: after the guard was raised, see presence.h */
	if (c->peer &&
	    ((load_seq_cst(&c->sh->conn) & URXE_CONN_ENDS) != c->want ||
	     conn_qpn_is_reused(c)))
		conn_drop(c);
}

/*
 * Make @rx a view of SRQ @index of context @p, with completions in CQ @cq.
 * On success it takes over a reference to @p from the caller.  False: there
 * is no such SRQ.
 */
static bool rx_view_srq(struct urxe_rx *rx, struct urxe_peer *p, uint32_t index,
			uint32_t cq)
{
	struct urxe_srq_sh *srq;

	if (index >= URXE_MAX_SRQ)
		return false;
	srq = &p->arena->srq[index];
	/* seq_cst: after the guard was raised, see presence.h */
	rx->srq_live = load_seq_cst(&srq->live);
	if (!rx->srq_live || !rq_view_init(&rx->rq, p->arena, &srq->rq) ||
	    !cq_view_init(&rx->cq, p, cq))
		return false;
	rx->srq = srq;
	rx->shared = true;
	rx->srq_index = index;
	rx->pd = srq->pd;
	return true;
}

/* View the queue that QP @sh takes receives from; take a reference to @p. */
static bool rx_open(struct urxe_rx *rx, struct urxe_peer *p,
		    struct urxe_qp_sh *sh)
{
	rx->srq = NULL;
	rx->shared = load_relaxed(&sh->type) == IBV_QPT_UD;
	rx->rq.ring = NULL;
	rx->cq.peer = NULL;
	rx->cq.channel = NULL;
	if (load_relaxed(&sh->type) == IBV_QPT_XRC_RECV)
		return true; /* XRC: each request names an SRQ */
	if (sh->srq) {
		if (!rx_view_srq(rx, p, sh->srq - 1, sh->recv_cq))
			return false;
	} else {
		rx->pd = sh->pd;
		if (!rq_view_init(&rx->rq, p->arena, &sh->rq) ||
		    !cq_view_init(&rx->cq, p, sh->recv_cq))
			return false;
	}
	peer_hold(p);
	return true;
}

static const struct guard_rx no_rx = { .slot = GUARD_NO_RX };

/* Return the names of the receives that rx is a view of. */
static struct guard_rx rx_names(const struct urxe_rx *rx)
{
	const struct urxe_peer *p = rx_peer(rx);

	if (!p)
		return no_rx;
	return (struct guard_rx){ .slot = p->slot,
				  .srq = rx->srq ? rx->srq_index : GUARD_NO_SRQ,
				  .cq = (uint32_t)(rx->cq.sh - p->arena->cq),
				  .pd = rx->pd };
}

static bool rx_is_named(const struct urxe_rx *rx, const struct guard_rx *names)
{
	const struct guard_rx n = rx_names(rx);

	return n.slot == names->slot && n.srq == names->srq &&
	       n.cq == names->cq && n.pd == names->pd;
}

/* Return the names that rx_open() will find, unless the QP is replaced. */
static struct guard_rx rx_names_of_qp(const struct urxe_peer *p,
				      const struct urxe_qp_sh *sh)
{
	const uint32_t srq = hint_load(sh->srq);
	struct guard_rx n = { .slot = p->slot,
			      .srq = GUARD_NO_SRQ,
			      .cq = hint_load(sh->recv_cq),
			      .pd = hint_load(sh->pd) };

	if (load_relaxed(&sh->type) == IBV_QPT_XRC_RECV)
		return no_rx;
	if (srq && srq <= URXE_MAX_SRQ) {
		n.srq = srq - 1;
		n.pd = hint_load(p->arena->srq[n.srq].pd);
	}
	return n;
}

void conn_retarget(const struct urxe_qp *qp, const struct urxe_conn *c,
		   uint32_t uses)
{
	struct guard_rx names;

	if (likely(load_relaxed(&qp->guard->dest) == c->qpn &&
		   guard_names(qp->guard, uses)))
		return;
	names = rx_names(&c->rx);
	guard_name(qp->guard, uses);
	guard_retarget(qp->guard, c->qpn, &names);
}

/*
 * Is qp of a kind that can use the fast path (exec/direct.h)?  Its completion
 * counters have been attached before it is connected.  The fast path checks
 * neither which opcodes the device has nor the length of small messages.
 */
static bool conn_is_direct(const struct urxe_qp *qp)
{
	const uint32_t ops = WQE_SEND_OPS | WQE_WRITE_OPS | WQE_FETCH_OPS;

	return qp->type == IBV_QPT_RC && qp->sq.max_sge && !qp->counts &&
	       (qp->sq.ops & ops) == ops && qp->sq.max_msg >= URXE_EAGER_BYTES;
}

void conn_forget_direct(struct urxe_qp *qp)
{
	region_forget(&qp->direct_rx);
	region_forget(&qp->direct_src);
	region_forget(&qp->direct_dst);
	cq_known_forget(&qp->direct_scq);
	cq_known_forget(&qp->direct_rcq);
}

bool conn_open(struct urxe_qp *qp, struct urxe_conn *c, uint32_t qpn,
	       uint32_t dest)
{
	struct urxe_fabric *f = qp->ctx->fabric;
	struct guard_rx names;
	struct urxe_qp_sh *sh;
	struct urxe_peer *p;
	uint32_t slot, gen;

	if (!qpn_lookup(f->dev, qpn, &slot, &gen))
		return false;
	p = peer_get(f, slot, gen);
	if (!p)
		return false;
	sh = &p->arena->qp[qpn_index(qpn)];
	names = rx_names_of_qp(p, sh);
	guard_retarget(qp->guard, qpn, &names);
	/*
	 * seq_cst: after the guard names the QP, see presence.h.  The slot
	 * may belong to a new QP that is being created, so compare the QPN.
	 * An XRC initiator connects to an XRC target, other QPs to their own
	 * type.
	 */
	if (URXE_CONN_QPN(load_seq_cst(&sh->conn)) != qpn ||
	    load_relaxed(&sh->type) != (qp->type == IBV_QPT_XRC_SEND ?
						IBV_QPT_XRC_RECV :
						qp->type) ||
	    !rx_open(&c->rx, p, sh)) {
		peer_put(p);
		return false;
	}
	if (unlikely(!rx_is_named(&c->rx, &names))) {
		rx_close(&c->rx);
		peer_put(p);
		return false;
	}
	conn_forget_direct(qp);
	c->direct = conn_is_direct(qp);
	c->peer = p;
	c->sh = sh;
	c->qpn = qpn;
	c->pd = sh->pd;
	c->want = URXE_CONN(qpn, dest, 0);
	c->want_rts = URXE_CONN(qpn, dest, IBV_QPS_RTS);
	c->made = URXE_PATH_QPS(load_relaxed(&sh->path));
	c->path = 0;
	c->allows = 0;
	c->link = &qp->ctx->hca->path[p->device];
	c->link_seen = URXE_PATH(URXE_PORT_NOP, 0);
	if (unlikely(qp->count_to != p->hca))
		counters_move(qp, p->hca);
	if (p->fd >= 0)
		service_need(qp->ctx); /* detects the exit of the peer */
	return true;
}

/* Whether rx is a view of SRQ @srqn, and SRQ and context still exist. */
static bool conn_has_srq(struct urxe_qp *qp, struct urxe_conn *c, uint32_t srqn)
{
	const struct urxe_peer *p = rx_peer(&c->rx);
	const struct urxe_ctx_slot *owner;

	if (!p || c->srqn != srqn)
		return false;
	owner = &qp->ctx->fabric->dev->ctx[p->slot];
	return load_seq_cst(&c->rx.srq->live) == c->rx.srq_live &&
	       !peer_has_died(rx_peer(&c->rx)) &&
	       load_relaxed(&owner->gen) == p->gen &&
	       load_relaxed(&owner->state) == URXE_CTX_LIVE;
}

bool conn_use_srq(struct urxe_qp *qp, struct urxe_conn *c, uint32_t srqn)
{
	struct urxe_fabric *f = qp->ctx->fabric;
	uint32_t slot = URXE_SRQN_CTX(srqn);
	struct urxe_srq_sh *srq;
	struct guard_rx names;
	struct urxe_peer *p;

	if (slot >= URXE_MAX_CTX || !srqn)
		return false;
	if (conn_has_srq(qp, c, srqn))
		return true;
	if (load_acquire(&f->dev->ctx[slot].state) != URXE_CTX_LIVE)
		return false;
	p = peer_get(f, slot, load_relaxed(&f->dev->ctx[slot].gen));
	if (!p)
		return false;
	rx_close(&c->rx);
	srq = &p->arena->srq[URXE_SRQN_INDEX(srqn)];
	names = (struct guard_rx){ .slot = slot,
				   .srq = URXE_SRQN_INDEX(srqn),
				   .cq = hint_load(srq->cq),
				   .pd = hint_load(srq->pd) };
	guard_retarget(qp->guard, c->qpn, &names);
	if (!rx_view_srq(&c->rx, p, names.srq, names.cq)) {
		peer_put(p);
		return false;
	}
	/* after its live word was read: it is the SRQ that the guard names */
	if (srq->type != IBV_SRQT_XRC || srq->xrcd != c->sh->xrcd ||
	    hint_load(srq->cq) != names.cq || !rx_is_named(&c->rx, &names)) {
		rx_close(&c->rx);
		return false;
	}
	c->srqn = srqn;
	/* an XRC request uses the protection domain of the SRQ it names */
	c->pd = srq->pd;
	return true;
}

bool conn_can_receive(struct urxe_conn *c, uint64_t word)
{
	switch (URXE_CONN_STATE(word)) {
	case IBV_QPS_RTR:
		/* IB 11.6.3.1: raised for the first packet in RTR */
		if (load_relaxed(&c->sh->type) != IBV_QPT_UD &&
		    !load_relaxed(&c->sh->comm_est) &&
		    !exchange_acq_rel(&c->sh->comm_est, 1))
			event_raise(c->peer, c->sh, IBV_EVENT_COMM_EST);
		return true;
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
		return true;
	default:
		return false;
	}
}

/* The part of conn_ready() for the SRQ that an XRC request names. */
static enum response __attribute__((noinline))
conn_ready_srq(struct urxe_qp *qp, struct urxe_conn *c, uint32_t srqn,
	       bool in_use)
{
	if (in_use && !conn_has_srq(qp, c, srqn))
		return RESP_OTHER;
	if (!conn_use_srq(qp, c, srqn)) {
		why_note(NO_SRQ, srqn, c->qpn);
		return RESP_NAK_INVALID;
	}
	return RESP_ACK;
}

/*
 * Do the GIDs of both ends match?  Without a GRH there are none.  header is
 * the network header of both.
 */
static bool conn_gids_match(const struct urxe_qp_sh *mine,
			    const struct urxe_qp_sh *theirs, uint8_t header)
{
	uint8_t sgid[16], dgid[16];

	if (header == URXE_IB_LOCAL)
		return true;
	shared_gid_get(&mine->sgid, sgid);
	shared_gid_get(&mine->dgid, dgid);
	return shared_gid_is(&theirs->dgid, sgid) &&
	       shared_gid_is(&theirs->sgid, dgid) &&
	       gids_fit(header, sgid, dgid);
}

/*
 * InfiniBand: does the LID that each end sends to lead to the port of the
 * other one, and do their P_Keys match?  Packets that do not are dropped; IB
 * 9.6.1.  The path bits of LIDs are not compared.
 */
static bool conn_lids_match(const struct urxe_qp *qp, const struct urxe_conn *c)
{
	const struct urxe_subnet *here = &qp->ctx->hca->subnet;
	const struct urxe_subnet *there = &c->peer->hca->subnet;
	const uint16_t to = load_relaxed(&qp->sh->dlid);
	const uint16_t from = load_relaxed(&c->sh->dlid);
	const uint16_t mine =
		port_pkey(here, load_relaxed(&qp->sh->pkey_index));
	const uint16_t theirs =
		port_pkey(there, load_relaxed(&c->sh->pkey_index));

	if (!port_has_lid(there, to)) {
		why_note(LID, to, c->qpn, port_lid(there));
		return false;
	}
	if (!port_has_lid(here, from)) {
		why_note(LID_BACK, c->qpn, from, port_lid(here));
		return false;
	}
	if (pkeys_match(mine, theirs))
		return true;
	fetch_add_relaxed(&c->peer->hca->counter[URXE_CNT_BAD_PKEY], 1);
	why_note(PKEY, mine, theirs, c->qpn);
	return false;
}

/*
 * Check that both ends have the same path, each from its side.  Packets with
 * other addresses, or another network header, do not belong to the connection
 * (annex A17.4.7, IB 9.6.1) and get no response.  A packet that is longer than
 * the responder's path_mtu is an invalid request.
 *
 * The check is repeated when an end or, on InfiniBand, a port was modified.
 * While our path_mtu is the larger one, it is made for each request.
 */
static enum response __attribute__((noinline))
conn_check_path(struct urxe_qp *qp, struct urxe_conn *c,
		const struct urxe_wqe *w)
{
	const struct urxe_qp_sh *mine = qp->sh, *theirs = c->sh;
	const uint8_t header = load_relaxed(&mine->roce);
	const uint32_t link = load_acquire(c->link);
	uint32_t now = load_acquire(&theirs->path);
	uint8_t mtu = load_relaxed(&theirs->path_mtu);

	/* it may have gone down since conn_ready() checked it */
	if (URXE_PATH_STATE(link) != URXE_PORT_ACTIVE) {
		why_note(PORT_DOWN, 0);
		return RESP_SILENCE;
	}
	if (header != load_relaxed(&theirs->roce)) {
		if (qp->ctx->hca->infiniband)
			why_note(GRH, header == URXE_IB_GLOBAL, c->qpn);
		else
			why_note(ROCE, header, c->qpn,
				 load_relaxed(&theirs->roce));
		return RESP_SILENCE;
	}
	if (!conn_gids_match(mine, theirs, header)) {
		why_note(GIDS, c->qpn);
		return RESP_SILENCE;
	}
	if (qp->ctx->hca->infiniband && !conn_lids_match(qp, c))
		return RESP_SILENCE;
	if (qp->mtu_shift <= mtu + 7) {
		c->path = now;
		c->link_seen = link;
		c->allows = load_relaxed(&theirs->counts) ?
				    0 :
				    load_relaxed(&theirs->access) |
					    CONN_ALLOWS_SEND;
		return RESP_ACK;
	}
	if (!(WQE_INLINE_OPS & WQE_BIT(w->opcode)) ||
	    w->length <= 128ull << mtu)
		return RESP_ACK;
	why_note(PATH_MTU, 1u << qp->mtu_shift, c->qpn, 128u << mtu);
	return RESP_NAK_INVALID;
}

static void __attribute__((cold, noinline)) note_no_qp(const struct urxe_qp *qp)
{
	why_note(NO_QP, qp->attr.dest_qp_num, qp->qpn);
}

static void __attribute__((cold, noinline))
note_death(const struct urxe_conn *c)
{
	why_note(DIED, c->qpn, c->peer->arena->pid);
}

static void __attribute__((cold, noinline))
note_psn(const struct urxe_qp *qp, const struct urxe_conn *c, uint32_t epsn)
{
	why_note(PSN, qp->psn, epsn, c->qpn);
}

static enum response __attribute__((cold, noinline))
conn_not_receiving(const struct urxe_conn *c, uint64_t word)
{
	if (URXE_PATH_STATE(load_relaxed(c->link)) == URXE_PORT_NOP)
		why_note(NO_LINK, c->qpn);
	else if (!conn_has_link(c))
		why_note(PORT_DOWN, 0);
	else
		why_note(PEER_STATE, c->qpn, URXE_CONN_STATE(word));
	return RESP_SILENCE;
}

static bool __attribute__((cold, noinline))
conn_reopen(struct urxe_qp *qp, struct urxe_conn *c)
{
	conn_drop(c);
	return conn_open(qp, c, qp->attr.dest_qp_num, qp->qpn);
}

enum response conn_ready(struct urxe_qp *qp, const struct urxe_wqe *w,
			 bool in_use)
{
	struct urxe_conn *c = &qp->conn;
	enum response resp;
	uint32_t epsn;
	uint64_t word;

	if (unlikely(!c->peer) &&
	    !conn_open(qp, c, qp->attr.dest_qp_num, qp->qpn)) {
		note_no_qp(qp);
		return RESP_SILENCE;
	}
	if (peer_has_died(c->peer)) {
		note_death(c);
		return RESP_SILENCE;
	}
	/* seq_cst: after the guard was raised, see presence.h */
	word = load_seq_cst(&c->sh->conn);
	if (conn_qpn_is_reused(c)) {
		if (in_use)
			return RESP_OTHER;
		if (!conn_reopen(qp, c)) {
			note_no_qp(qp);
			return RESP_SILENCE;
		}
		word = load_seq_cst(&c->sh->conn);
	}
	if (unlikely((word & URXE_CONN_ENDS) != c->want)) {
		if (in_use)
			return RESP_OTHER;
		conn_drop(c);
		note_no_qp(qp);
		return RESP_SILENCE;
	}
	if (unlikely(!conn_has_link(c) ||
		     (URXE_CONN_STATE(word) != IBV_QPS_RTS &&
		      !conn_can_receive(c, word))))
		return conn_not_receiving(c, word);
	epsn = load_relaxed(&c->sh->epsn);
	if (unlikely(load_acquire(&c->sh->path) != c->path ||
		     load_acquire(c->link) != c->link_seen)) {
		/* after a reset and reconnect its receive queue is empty */
		if (!c->rx.shared && c->rx.rq.ring)
			rq_view_forget(&c->rx.rq);
		resp = conn_check_path(qp, c, w);
		if (resp)
			return resp;
	}
	/* IB 9.8.2.2: a UC responder resynchronizes to the PSN it receives */
	if (unlikely(epsn != qp->psn) && qp->type != IBV_QPT_UC) {
		note_psn(qp, c, epsn);
		return RESP_NAK_SEQUENCE;
	}
	if (likely(qp->type != IBV_QPT_XRC_SEND))
		return RESP_ACK;
	return conn_ready_srq(qp, c, w->srqn, in_use);
}

bool conn_accepts_datagram(struct urxe_conn *c, uint32_t qkey)
{
	uint64_t word = load_seq_cst(&c->sh->conn);

	if ((word & URXE_CONN_ENDS) != c->want || peer_has_died(c->peer)) {
		conn_drop(c);
		return false;
	}
	if (!conn_can_receive(c, word))
		return false;
	if (load_relaxed(&c->sh->qkey) == qkey)
		return true;
	fetch_add_relaxed(&c->peer->hca->counter[URXE_CNT_BAD_QKEY], 1);
	urxe_note(
		"datagram for QP 0x%x dropped: Q_Key 0x%x does not match 0x%x of the QP",
		c->qpn, qkey, load_relaxed(&c->sh->qkey));
	return false;
}

/* Notify the poller of a remote CQ that a QP of it changed state. */
static void conn_attention(struct urxe_conn *c, uint32_t cq)
{
	struct urxe_cq_view v;

	if (!cq_view_init(&v, c->peer, cq))
		return;
	cq_attention(&v);
	cq_view_fini(&v);
}

void conn_break(struct urxe_conn *c, enum response nak,
		const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	uint64_t word = load_relaxed(&c->sh->conn);

	do {
		if ((word & URXE_CONN_ENDS) != c->want ||
		    URXE_CONN_STATE(word) == IBV_QPS_ERR)
			return;
	} while (!cas_seq_cst(&c->sh->conn, &word,
			      URXE_CONN_WITH(word, IBV_QPS_ERR)));
	why_refused(c->peer->arena, c->sh, qp, w);
	fetch_add_relaxed(&c->peer->hca->counter[URXE_CNT_REM_ERR], 1);
	if (nak == RESP_NAK_INVALID)
		event_raise(c->peer, c->sh, IBV_EVENT_QP_REQ_ERR);
	else if (nak == RESP_NAK_ACCESS)
		event_raise(c->peer, c->sh, IBV_EVENT_QP_ACCESS_ERR);
	/* the owner may sleep until an event, and not poll */
	if (c->sh->srq)
		flush_last_wqe(c->peer, c->sh);
	conn_attention(c, c->sh->recv_cq);
	if (c->sh->send_cq != c->sh->recv_cq)
		conn_attention(c, c->sh->send_cq);
}

/*
 * Let c be the connection of the QP c->qpn, whoever sends to it.  Return
 * false if there is no such QP, else the caller puts c->peer.
 */
static bool conn_of_responder(struct urxe_conn *c, struct urxe_fabric *f)
{
	uint32_t slot, gen;

	if (!qpn_lookup(f->dev, c->qpn, &slot, &gen))
		return false;
	c->peer = peer_get(f, slot, gen);
	if (!c->peer)
		return false;
	c->sh = &c->peer->arena->qp[qpn_index(c->qpn)];
	c->want = load_relaxed(&c->sh->conn) & URXE_CONN_ENDS;
	if (URXE_CONN_QPN(c->want) == c->qpn)
		return true;
	peer_put(c->peer);
	return false;
}

void conn_break_unplaced(struct urxe_fabric *f, uint32_t qpn)
{
	struct urxe_conn c = { .qpn = qpn };

	if (!conn_of_responder(&c, f))
		return;
	store_relaxed(&c.sh->unplaced, 1);
	conn_break(&c, RESP_NAK_OPERATION, NULL, NULL);
	peer_put(c.peer);
}

bool conn_is_unplaced(struct urxe_fabric *f, uint32_t qpn)
{
	struct urxe_conn c = { .qpn = qpn };
	bool ret;

	if (!conn_of_responder(&c, f))
		return false;
	ret = load_relaxed(&c.sh->unplaced);
	peer_put(c.peer);
	return ret;
}
