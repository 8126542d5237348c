// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Responder side of SEND and RDMA WRITE, packet by packet.  The first packet
 * of a SEND takes a receive.  Each packet's bytes are placed at once.  The
 * last packet completes the receive.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <string.h>

#include "engine/exec/bind.h"
#include "engine/qp/comp_cntr.h"
#include "engine/qp/why.h"
#include "server.h"
#include "wire/socket/inbox.h"

/* Return the number of bytes of the message before this packet. */
static uint64_t request_offset(const struct request *r)
{
	return (uint64_t)((r->p->bth.psn - r->st->first) & WIRE_PSN_MASK) *
	       r->mtu;
}

static struct urxe_seg request_bytes(const struct request *r)
{
	return (struct urxe_seg){ .ptr = (char *)(uintptr_t)r->p->payload,
				  .len = r->p->length };
}

static void request_wqe(const struct request *r, uint64_t length,
			struct urxe_wqe *w)
{
	const unsigned int parts = wire_parts(r->p->bth.opcode);

	memset(w, 0, sizeof(*w));
	w->length = length;
	w->flags = r->p->bth.solicited ? IBV_SEND_SOLICITED : 0;
	w->opcode = IBV_WR_SEND;
	if (parts & WIRE_HAS(IMMDT)) {
		w->opcode = IBV_WR_SEND_WITH_IMM;
		w->imm = htonl(r->p->immdt.imm);
	} else if (parts & WIRE_HAS(IETH)) {
		w->opcode = IBV_WR_SEND_WITH_INV;
		w->imm = r->p->ieth.rkey;
	}
}

/* ------------------------------------------------------- receives */

static void stored_receive_put(struct urxe_stored_receive *k,
			       const struct stored_receive *t,
			       uint32_t srq_live)
{
	uint32_t i;

	k->srq_live = srq_live;
	k->wr_id = t->wr_id;
	k->index = t->index;
	k->ticket = t->ticket;
	k->num_sge = (uint8_t)t->num_sge;
	for (i = 0; i < t->num_sge; i++) {
		k->sge[i].addr = t->sge[i].addr;
		k->sge[i].length = t->sge[i].length;
		k->sge[i].lkey = t->sge[i].lkey;
	}
	store_release(&k->valid, 1);
}

static void stored_receive_get(const struct urxe_stored_receive *k,
			       struct stored_receive *t)
{
	uint32_t i;

	t->wr_id = k->wr_id;
	t->index = k->index;
	t->ticket = k->ticket;
	t->num_sge = k->num_sge < URXE_MAX_SGE ? k->num_sge : URXE_MAX_SGE;
	t->total = 0;
	for (i = 0; i < t->num_sge; i++) {
		t->sge[i] = (struct urxe_sge){ k->sge[i].addr, k->sge[i].length,
					       k->sge[i].lkey };
		t->total += t->sge[i].length;
	}
}

/* Use the stored receive of the message in progress, or take the next one. */
static enum response request_take(struct request *r, const struct urxe_wqe *w,
				  struct stored_receive *t)
{
	struct urxe_stored_receive *k = &r->st->receive;
	enum response resp;

	if (load_acquire(&k->valid)) {
		stored_receive_get(k, t);
		return RESP_ACK;
	}
	respond_step(r);
	resp = responder_take(&r->s->me, r->c, w, w->length, t);
	if (!resp)
		stored_receive_put(k, t, r->c->rx.srq_live);
	respond_step_undone(r);
	return resp;
}

/* Commit the last packet of a message that completed a receive. */
static void request_received(struct request *r)
{
	server_count(r->s, URXE_CNT_RECVS);
	respond_accept(r, 1, URXE_WIRE_NOTHING);
}

/*
 * Raise the event of a receive in the order of a NIC: after its ACK was sent,
 * and after the events of the QP's own sends that were acknowledged before.  A
 * program that takes one completion for each event depends on both.
 */
static void request_notify(struct request *r, struct receipt *rc)
{
	struct urxe_wire_qp *e;

	if (likely(!rc->notify))
		return;
	reply_acks(r->s);
	e = wire_entry(r->c->peer->arena, r->c->qpn);
	if (e)
		inbox_wait(r->c->peer, &e->inbox);
	responder_notify(rc);
}

/*
 * The last step of a packet that completes a receive: publish the completion
 * of rc, if there is one.  On success the packet is committed, otherwise the
 * QP is broken.  Return resp.
 */
static enum response request_end(struct request *r, struct receipt *rc,
				 enum response resp, enum ibv_wc_status failed)
{
	if (rc->conn)
		responder_publish(rc);
	if (resp || failed)
		respond_step_undone(r);
	else
		request_received(r);
	request_notify(r, rc);
	return resp;
}

/* Complete the receive t, with success or with status `failed`. */
static enum response request_complete(struct request *r,
				      const struct urxe_wqe *w,
				      const struct stored_receive *t,
				      enum ibv_wc_status failed)
{
	struct receipt rc;
	enum response resp;

	respond_step(r);
	resp = responder_complete(&r->s->me, r->c, w, t, failed, &rc);
	store_relaxed(&r->st->receive.valid, 0);
	return request_end(r, &rc, resp, failed);
}

static enum response request_failed(struct request *r, const struct urxe_wqe *w,
				    const struct stored_receive *t,
				    enum response resp,
				    enum ibv_wc_status failed)
{
	if ((resp != RESP_NAK_INVALID && resp != RESP_NAK_OPERATION) ||
	    (failed == IBV_WC_LOC_LEN_ERR &&
	     responder_keeps_receive(&r->s->me, &r->c->rx)))
		return resp;
	request_complete(r, w, t, failed);
	if (r->s->me.type == IBV_QPT_UC) /* UC has no NAK */
		conn_break(r->c, RESP_NAK_OPERATION, NULL, NULL);
	return resp;
}

void request_abandon(struct request *r)
{
	const struct urxe_wqe w = { .opcode = IBV_WR_SEND };
	struct stored_receive t;

	if (!load_acquire(&r->st->receive.valid))
		return;
	if (!shared_use_stored_srq(r)) {
		if (r->s->me.type == IBV_QPT_XRC_SEND)
			store_relaxed(&r->st->receive.valid, 0);
		return;
	}
	stored_receive_get(&r->st->receive, &t);
	request_complete(r, &w, &t, IBV_WC_WR_FLUSH_ERR);
}

/* ------------------------------------------------------- invalidating */

/*
 * Invalidate the key of a SEND WITH INVALIDATE, before the receive completes
 * (execute_send_inv).  A retransmission after an RNR NAK does not repeat it.
 */
static enum urxe_inv request_invalidate(struct request *r,
					const struct urxe_wqe *w)
{
	const uint32_t again = r->p->bth.psn | URXE_WIRE_BEGUN;

	if (r->st->invalidated == (r->p->bth.psn | URXE_WIRE_DONE))
		return URXE_INV_DONE;
	return bind_invalidate(&r->s->me, conn_key_peer(r->c), r->c->qpn,
			       r->c->pd, w->imm, r->st->invalidated == again);
}

/* Note the result for retransmissions. */
static void request_note_invalidated(struct request *r, enum urxe_inv inv)
{
	if (inv == URXE_INV_DONE)
		r->st->invalidated = r->p->bth.psn | URXE_WIRE_DONE;
	if (inv == URXE_INV_BUSY)
		r->st->invalidated = r->p->bth.psn | URXE_WIRE_BEGUN;
}

bool request_is_accepted(const struct request *r)
{
	uint64_t word = load_seq_cst(&r->c->sh->conn);

	return (word & URXE_CONN_ENDS) == r->c->want &&
	       conn_can_receive(r->c, word);
}

/* ------------------------------------------------------- SEND */

/* Execute a SEND of one packet. */
static enum response send_only(struct request *r, const struct urxe_wqe *w,
			       enum ibv_wc_status failed)
{
	const struct urxe_seg src = request_bytes(r);
	struct receipt rc;
	enum response resp;

	respond_step(r);
	resp = responder_receive(&r->s->me, r->c, w, &src, 0, failed, &rc);
	request_end(r, &rc, resp, failed);
	if (r->s->me.type == IBV_QPT_UC &&
	    (resp == RESP_NAK_INVALID || resp == RESP_NAK_OPERATION))
		conn_break(r->c, RESP_NAK_OPERATION, NULL, NULL);
	return resp;
}

/* Execute one of several packets, or a packet for a stored receive. */
static enum response send_part(struct request *r, struct urxe_wqe *w, bool last,
			       enum ibv_wc_status invalidated)
{
	const uint64_t off = request_offset(r);
	const struct urxe_seg src = request_bytes(r);
	enum ibv_wc_status failed;
	enum response resp;
	struct stored_receive t;

	resp = request_take(r, w, &t);
	if (resp)
		return resp;
	resp = responder_place(&r->s->me, r->c, &t, off, &src, &failed);
	if (resp)
		return request_failed(r, w, &t, resp, failed);
	if (last)
		return request_complete(r, w, &t, invalidated);
	respond_accept(r, 1, URXE_WIRE_SEND);
	return RESP_ACK;
}

enum response request_send(struct request *r)
{
	const bool first = r->op == WIRE_SEND_FIRST;
	const bool middle = r->op == WIRE_SEND_MIDDLE;
	const bool only = r->under_way != URXE_WIRE_SEND && !first;
	enum ibv_wc_status failed = IBV_WC_SUCCESS;
	enum response resp;
	enum urxe_inv inv;
	struct urxe_wqe w;

	if (first || only)
		r->st->first = r->p->bth.psn;
	request_wqe(r, request_offset(r) + r->p->length, &w);
	if (w.length > URXE_MAX_MSG)
		return RESP_NAK_INVALID;
	if (w.opcode == IBV_WR_SEND_WITH_INV) {
		if (only && !load_relaxed(&r->st->receive.valid) &&
		    !responder_has_receive(r->c))
			return RESP_RNR;
		inv = request_invalidate(r, &w);
		/* the guard was lowered meanwhile */
		if (!request_is_accepted(r))
			return RESP_SILENCE;
		request_note_invalidated(r, inv);
		if (inv == URXE_INV_BUSY || shared_use_srq(r))
			return RESP_SILENCE;
		if (inv == URXE_INV_FAILED)
			failed = IBV_WC_REM_INV_REQ_ERR;
	}
	if (only && !load_relaxed(&r->st->receive.valid))
		resp = send_only(r, &w, failed);
	else
		resp = send_part(r, &w, !first && !middle, failed);
	/* error class J: the QP is broken and no NAK is sent */
	if (!resp && failed)
		conn_break(r->c, RESP_NAK_OPERATION, NULL, NULL);
	return resp;
}

/* ------------------------------------------------------- RDMA WRITE */

static enum response write_place(struct request *r, uint64_t off)
{
	const struct urxe_seg src = request_bytes(r);
	struct urxe_seg dst;
	enum response resp;

	resp = responder_access(r->c, r->st->rkey, r->st->addr + off, src.len,
				IBV_ACCESS_REMOTE_WRITE, &dst, NULL);
	if (resp || !src.len)
		return resp;
	if (dst.ptr && likely(transfer_local(dst.ptr, src.ptr, src.len)))
		return RESP_ACK;
	return moved(transfer(&dst, &src, src.len, r->s->me.ctx, false));
}

/* Record the RETH of the first packet and check access to the whole range. */
static enum response write_begin(struct request *r)
{
	struct urxe_wire_responder *st = r->st;
	const struct wire_reth *reth = &r->p->reth;
	struct urxe_seg dst;

	if (reth->length > URXE_MAX_MSG)
		return RESP_NAK_INVALID;
	st->first = r->p->bth.psn;
	st->addr = reth->addr;
	st->rkey = reth->rkey;
	st->length = reth->length;
	return responder_access(r->c, st->rkey, st->addr, st->length,
				IBV_ACCESS_REMOTE_WRITE, &dst, NULL);
}

/*
 * Check the message length in the RETH against the bytes up to this packet.
 */
static bool write_fits(const struct request *r, uint64_t off, bool last)
{
	const uint64_t end = off + r->p->length;

	return last ? end == r->st->length : end < r->st->length;
}

static void write_imm_wqe(const struct request *r, struct urxe_wqe *w)
{
	request_wqe(r, r->st->length, w);
	w->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
}

/*
 * Complete a receive for a WRITE WITH IMMEDIATE.  On UC, a lost message may
 * have left a stored receive, which is used first.
 */
static enum response write_receive(struct request *r, enum ibv_wc_status failed)
{
	struct receipt rc;
	enum response resp;
	struct urxe_wqe w;
	struct stored_receive t;

	write_imm_wqe(r, &w);
	if (unlikely(load_acquire(&r->st->receive.valid))) {
		stored_receive_get(&r->st->receive, &t);
		return request_complete(r, &w, &t, failed);
	}
	respond_step(r);
	resp = responder_receive(&r->s->me, r->c, &w, NULL, 0, failed, &rc);
	return request_end(r, &rc, resp, failed);
}

static void write_count(struct request *r, bool failed)
{
	const struct urxe_wqe w = { .opcode = IBV_WR_RDMA_WRITE,
				    .length = r->st->length };

	comp_cntr_remote(r->c, &w, failed);
}

/*
 * Like execute_write_imm_refused(): the receive also completes with an error.
 */
static enum response write_refused(struct request *r, bool imm,
				   enum response resp)
{
	if (resp == RESP_SILENCE)
		return resp;
	write_count(r, true);
	if (imm && r->s->me.type != IBV_QPT_UC &&
	    (resp == RESP_NAK_ACCESS || resp == RESP_NAK_OPERATION))
		write_receive(r, IBV_WC_LOC_ACCESS_ERR);
	return resp;
}

enum response request_write(struct request *r)
{
	const bool first = r->op == WIRE_WRITE_FIRST;
	const bool last = !first && r->op != WIRE_WRITE_MIDDLE;
	const bool imm = wire_parts(r->p->bth.opcode) & WIRE_HAS(IMMDT);
	enum response resp = RESP_ACK;
	uint64_t off;

	if (imm && !load_relaxed(&r->st->receive.valid) &&
	    !responder_has_receive(r->c))
		return RESP_RNR;
	if (r->under_way != URXE_WIRE_WRITE)
		resp = write_begin(r);
	if (resp)
		return write_refused(r, imm, resp);
	off = request_offset(r);
	if (!write_fits(r, off, last))
		return RESP_NAK_INVALID;
	resp = write_place(r, off);
	if (resp)
		return write_refused(r, imm, resp);
	if (imm)
		return write_receive(r, IBV_WC_SUCCESS);
	if (last)
		write_count(r, false);
	respond_accept(r, 1, last ? URXE_WIRE_NOTHING : URXE_WIRE_WRITE);
	return RESP_ACK;
}
