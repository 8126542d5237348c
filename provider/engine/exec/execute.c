// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Execution of a work request.  The requester also executes the responder's
 * part: it resolves its own SGEs, determines from the responder's shared
 * state how that NIC would respond (conn.c, responder.c), and copies the data
 * once (transfer.c).
 *
 * execute() runs in the thread that posts or polls, or in the service thread,
 * with qp->lock held and the guard raised (shared/guard.h).  It returns a
 * verdict: done, collected for one system call (WR_IN_FLIGHT), to be retried
 * (WR_RNR, WR_SILENT), or failed with run.status.
 *
 * Errors of memory that is sent are found before the request reaches the
 * responder, as on a NIC.  The responses are those of IB 9.7.5.2;
 * execute_answered() translates them to completion statuses (IB 11.6.2).  A
 * NAK also takes the remote QP to ERR (conn_break()).
 */
#include "atomics.h"
#include "bind.h"
#include "engine/qp/comp_cntr.h"
#include "execute.h"
#include "engine/core/log.h"
#include "engine/core/observe.h"
#include "engine/mr/odp.h"
#include "requester.h"
#include "responder.h"
#include "ud.h"
#include "engine/qp/why.h"

/* ------------------------------------------------------- local memory */

static void __attribute__((cold, noinline))
lkey_refused(const struct urxe_qp *qp, const struct urxe_sge *s,
	     uint32_t access)
{
	const struct mem_use use = {
		.peer = qp->ctx->self,
		.key = s->lkey,
		.pd = qp->sh->pd,
		.access = access,
		.qpn = qp->qpn,
		.addr = s->addr,
		.len = s->length,
	};

	mem_refused(REASON_LKEY_SEND, &use);
}

static void __attribute__((cold, noinline))
pages_missing(const struct urxe_qp *qp, const struct urxe_sge *s)
{
	why_note(KEY_PAGES, REASON_KEY(REASON_LKEY_SEND, s->lkey), qp->qpn,
		 s->length, s->addr);
}

/*
 * Resolve the WR's SGEs, or its inline data, to runs of memory.  Return the
 * number of runs, or -1 if a key does not allow the access, or if pages of an
 * on-demand MR are missing.
 */
static int execute_gather(struct urxe_qp *qp, const struct urxe_wqe *w,
			  uint32_t access, struct urxe_seg *seg)
{
	const struct urxe_key *k;
	int i;

	if (w->flags & IBV_SEND_INLINE) {
		seg[0].ptr = (char *)(uintptr_t)w->sge;
		seg[0].len = w->length;
		return 1;
	}
	for (i = 0; i < w->num_sge; i++) {
		const struct urxe_sge *s = &w->sge[i];

		seg[i].len = s->length;
		if (unlikely(!s->length))
			continue;
		k = mem_lookup(qp->ctx->self, s->lkey, qp->sh->pd, s->addr,
			       s->length, access);
		if (unlikely(!k)) {
			lkey_refused(qp, s, access);
			return -1;
		}
		if (unlikely(k->flags & URXE_MR_ODP) &&
		    mem_is_mine(qp->ctx->self, k) &&
		    odp_populate(k->va + (s->addr - k->iova), s->length,
				 access)) {
			pages_missing(qp, s);
			return -1;
		}
		mem_reach(qp->ctx->self, k, s->addr, s->length, &seg[i]);
	}
	return w->num_sge;
}

int part_gather(struct urxe_qp *qp, const struct urxe_wqe *w, bool write,
		struct urxe_seg *seg)
{
	return execute_gather(qp, w, write ? IBV_ACCESS_LOCAL_WRITE : 0, seg);
}

/*
 * A request whose response is more than an ACK needs a responder resource.
 * False: max_rd_atomic is 0; r->status is set.
 */
static bool execute_check_depth(const struct urxe_qp *qp, struct run *r)
{
	if (likely(qp->attr.max_rd_atomic))
		return true;
	why_note(DEPTH, 0);
	r->status = IBV_WC_LOC_QP_OP_ERR;
	return false;
}

/* Check that the WR has 8 bytes.  False: r->status is set. */
static bool execute_check_word(struct run *r, const struct urxe_wqe *w)
{
	if (likely(w->length == 8))
		return true;
	why_note(WORD, w->length);
	r->status = IBV_WC_LOC_LEN_ERR;
	return false;
}

/* Check a READ or an atomic.  False: a local error; r->status is set. */
static bool execute_check_fetch(struct urxe_qp *qp, struct run *r,
				const struct urxe_wqe *w)
{
	return execute_check_depth(qp, r) &&
	       (w->opcode == IBV_WR_RDMA_READ || execute_check_word(r, w));
}

/* Load the value of an ATOMIC WRITE.  False: r->status is set. */
static bool execute_gather_value(struct urxe_qp *qp, struct run *r,
				 const struct urxe_wqe *w, uint64_t *value)
{
	struct urxe_seg src[URXE_MAX_SGE];
	struct urxe_seg dst = { .ptr = (char *)value, .len = 8 };

	if (!execute_check_depth(qp, r) || !execute_check_word(r, w))
		return false;
	if (!w->num_sge) {
		memcpy(value, w->write_data, 8);
		return true;
	}
	if (execute_gather(qp, w, 0, src) >= 0 &&
	    !transfer(&dst, src, 8, qp->ctx, true))
		return true;
	r->status = IBV_WC_LOC_PROT_ERR;
	return false;
}

/* Check a FLUSH (IB A19.4.2).  False: r->status is set. */
static bool execute_flush_check(struct urxe_qp *qp, struct run *r,
				const struct urxe_wqe *w)
{
	if (!execute_check_depth(qp, r))
		return false;
	if (wqe_flush_is_defined(w))
		return true;
	why_note(FLUSH_TYPE, w->flush.type, w->flush.level);
	r->status = IBV_WC_LOC_QP_OP_ERR;
	return false;
}

/*
 * Check the local side of a WR that gets no response or a NAK.  False: a
 * local error; r->status is set.
 *
 * A NIC reads its own memory first, so a silent peer or a missing receive
 * does not hide a fault.  Memory that the response is written to is checked
 * when the response arrives: a remote fault comes first, and an atomic was
 * executed.
 */
static bool execute_local_check(struct urxe_qp *qp, struct run *r,
				const struct urxe_wqe *w)
{
	struct urxe_seg seg[URXE_MAX_SGE];
	uint64_t value;

	switch (w->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_RDMA_READ:
		return execute_check_fetch(qp, r, w);
	case URXE_WR_ATOMIC_WRITE:
		return execute_gather_value(qp, r, w, &value);
	case URXE_WR_FLUSH:
		return execute_flush_check(qp, r, w);
	}
	r->status = IBV_WC_LOC_PROT_ERR;
	return execute_gather(qp, w, 0, seg) >= 0;
}

/* ------------------------------------------------------- answers */

static enum verdict execute_fail(struct run *r, enum ibv_wc_status status)
{
	r->status = status;
	return WR_FAILED;
}

static enum verdict __attribute__((cold))
execute_refused(struct urxe_qp *qp, struct run *r, const struct urxe_wqe *w,
		enum response nak)
{
	static const uint8_t status[] = {
		[RESP_NAK_INVALID] = IBV_WC_REM_INV_REQ_ERR,
		[RESP_NAK_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[RESP_NAK_OPERATION] = IBV_WC_REM_OP_ERR,
	};

	comp_cntr_remote(&qp->conn, w, true);
	conn_break(&qp->conn, nak, qp, w);
	return execute_fail(r, status[nak]);
}

enum verdict execute_answered(struct urxe_qp *qp, struct run *r,
			      const struct urxe_wqe *w, enum response resp)
{
	/* IB 9.8.3: UC has no responses; a request is served or dropped */
	if (unlikely(qp->type == IBV_QPT_UC && resp != RESP_OTHER)) {
		if (resp == RESP_RNR)
			responder_note_rnr(&qp->conn, qp->conn.qpn);
		if (resp)
			why_dropped(qp, w);
		return resp ? WR_DROPPED : WR_DONE;
	}
	switch (resp) {
	case RESP_ACK:
		return WR_DONE;
	case RESP_RNR:
		return WR_RNR;
	case RESP_SILENCE:
	case RESP_NAK_SEQUENCE:
		return WR_SILENT;
	case RESP_NAK_INVALID:
	case RESP_NAK_ACCESS:
	case RESP_NAK_OPERATION:
		return execute_refused(qp, r, w, resp);
	case RESP_OTHER:
		return execute_fail(r, IBV_WC_LOC_PROT_ERR);
	}
	return execute_fail(r, IBV_WC_FATAL_ERR);
}

/* ------------------------------------------------------- operations */

/*
 * IB 9.7.4.1.4: whether the responder has resources for one more READ or
 * atomic.  Here each one is served before the next begins.  Those that are
 * posted together, without a fence between them, count as outstanding at the
 * same time, as on a wire: up to max_rd_atomic.
 */
static bool execute_has_resources(const struct urxe_qp *qp, struct run *r)
{
	run_count_fetch(r, qp);
	if (likely(part_has_resources(qp, r->fetches)))
		return true;
	why_note(RESOURCES, r->fetches, qp->conn.qpn,
		 load_relaxed(&qp->conn.sh->max_dest_rd_atomic));
	return false;
}

/* No local error was found: the request reaches the responder. */
static inline void execute_arrives(const struct urxe_qp *qp,
				   const struct urxe_wqe *w)
{
	observe(OBSERVE_ARRIVES, qp, w, qp->conn.qpn);
}

static bool segs_are_mapped(const struct urxe_seg *seg, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (seg[i].len && !seg[i].ptr)
			return false;
	return true;
}

/* Add a WRITE to the batch; dst->ptr is NULL: it is not mapped here. */
static void execute_collect(struct run *r, const struct urxe_seg *dst,
			    const struct urxe_seg *src, int n)
{
	uint64_t va = dst->va;
	int i;

	r->batch.write = true;
	for (i = 0; i < n; i++) {
		if (!src[i].len)
			continue;
		transfer_add(&r->batch, dst, src[i].ptr, va, src[i].len);
		va += src[i].len;
	}
}

/* Copy the n runs of @src to @dst, which responder_access() returned. */
static inline enum response __attribute__((always_inline))
execute_move(struct urxe_qp *qp, const struct urxe_wqe *w,
	     const struct urxe_seg *dst, const struct urxe_seg *src, int n)
{
	if (likely(dst->ptr && n == 1 && src[0].ptr) &&
	    likely(transfer_local(dst->ptr, src[0].ptr, w->length)))
		return RESP_ACK;
	return moved_to(transfer(dst, src, w->length, qp->ctx, false));
}

static enum verdict execute_write(struct urxe_qp *qp, struct run *r,
				  const struct urxe_wqe *w)
{
	struct urxe_seg src[URXE_MAX_SGE], dst;
	enum response resp;
	enum verdict v;
	int n;

	n = execute_gather(qp, w, 0, src);
	if (unlikely(n < 0))
		return execute_fail(r, IBV_WC_LOC_PROT_ERR);
	execute_arrives(qp, w);
	resp = responder_access(&qp->conn, w->rkey, w->remote_addr, w->length,
				IBV_ACCESS_REMOTE_WRITE, &dst, NULL);
	if (TRANSFER_IN_ORDER && !resp && !dst.ptr && dst.pid && w->length &&
	    !qp->transport && segs_are_mapped(src, n)) {
		if (r->batch.n && (transfer_parts(&r->batch, &dst) ||
				   r->batch.n + n > TRANSFER_IOVS)) {
			v = requester_send_batch(qp, r);
			if (v != WR_DONE)
				return v;
		}
		execute_collect(r, &dst, src, n);
		return WR_IN_FLIGHT;
	}
	v = requester_send_batch(qp, r); /* earlier WRs first */
	if (unlikely(v != WR_DONE))
		return v;
	if (likely(!resp && w->length))
		resp = execute_move(qp, w, &dst, src, n);
	if (unlikely(resp))
		return execute_answered(qp, r, w, resp);
	comp_cntr_remote(&qp->conn, w, false);
	return WR_DONE;
}

static enum verdict execute_read(struct urxe_qp *qp, struct run *r,
				 const struct urxe_wqe *w)
{
	struct urxe_seg dst[URXE_MAX_SGE], src;
	enum response resp;

	if (!execute_check_fetch(qp, r, w))
		return WR_FAILED;
	execute_arrives(qp, w);
	if (!execute_has_resources(qp, r))
		return execute_answered(qp, r, w, RESP_NAK_INVALID);
	resp = responder_access(&qp->conn, w->rkey, w->remote_addr, w->length,
				IBV_ACCESS_REMOTE_READ, &src, NULL);
	if (!resp && execute_gather(qp, w, IBV_ACCESS_LOCAL_WRITE, dst) < 0)
		return execute_fail(r, IBV_WC_LOC_PROT_ERR);
	if (!resp && w->length) {
		/* order it after preceding WRITEs, and before later READs */
		atomic_thread_fence(memory_order_seq_cst);
		resp = moved_from(
			transfer(dst, &src, w->length, qp->ctx, false));
		atomic_thread_fence(memory_order_acquire);
	}
	if (!resp)
		comp_cntr_remote(&qp->conn, w, false);
	return execute_answered(qp, r, w, resp);
}

static enum verdict execute_atomic(struct urxe_qp *qp, struct run *r,
				   const struct urxe_wqe *w)
{
	struct urxe_seg dst[URXE_MAX_SGE], word, result;
	const struct urxe_key *key;
	enum response resp;
	uint64_t old;

	if (!execute_check_fetch(qp, r, w))
		return WR_FAILED;
	execute_arrives(qp, w);
	if (!execute_has_resources(qp, r) ||
	    !responder_is_aligned(w->remote_addr))
		return execute_answered(qp, r, w, RESP_NAK_INVALID);
	resp = responder_access(&qp->conn, w->rkey, w->remote_addr, 8,
				IBV_ACCESS_REMOTE_ATOMIC, &word, &key);
	/* the MR's first byte may itself be misaligned */
	if (!resp && !responder_is_aligned(word.va))
		resp = RESP_NAK_INVALID;
	if (unlikely(qp->fetched && !resp)) {
		old = qp->fetched_value;
		qp->fetched = false;
	} else if (!resp) {
		resp = atomics_execute(qp, &qp->conn, &word, key, w, &old);
	}
	if (!resp) {
		if (unlikely(urxe_observers != NULL))
			observe_fetch(qp, w, old);
		result.ptr = (char *)&old;
		result.len = 8;
		if (execute_gather(qp, w, IBV_ACCESS_LOCAL_WRITE, dst) < 0 ||
		    transfer(dst, &result, 8, qp->ctx, true))
			return execute_fail(r, IBV_WC_LOC_PROT_ERR);
	}
	return execute_answered(qp, r, w, resp);
}

/* ATOMIC WRITE (IB A19.4.4): 8 bytes, never seen half written. */
static enum verdict execute_atomic_write(struct urxe_qp *qp, struct run *r,
					 const struct urxe_wqe *w)
{
	struct urxe_seg src = { .len = 8 }, dst;
	enum response resp;
	uint64_t value;

	if (!execute_gather_value(qp, r, w, &value))
		return WR_FAILED;
	execute_arrives(qp, w);
	if (!execute_has_resources(qp, r) ||
	    !responder_is_aligned(w->remote_addr))
		return execute_answered(qp, r, w, RESP_NAK_INVALID);
	src.ptr = (char *)&value;
	resp = responder_access(&qp->conn, w->rkey, w->remote_addr, 8,
				IBV_ACCESS_REMOTE_WRITE, &dst, NULL);
	if (!resp && !responder_is_aligned(dst.va)) /* as for an atomic */
		resp = RESP_NAK_INVALID;
	if (!resp)
		resp = moved(transfer(&dst, &src, 8, qp->ctx, false));
	return execute_answered(qp, r, w, resp);
}

static enum verdict execute_flush(struct urxe_qp *qp, struct run *r,
				  const struct urxe_wqe *w)
{
	if (!execute_flush_check(qp, r, w))
		return WR_FAILED;
	execute_arrives(qp, w);
	if (!execute_has_resources(qp, r))
		return execute_answered(qp, r, w, RESP_NAK_INVALID);
	return execute_answered(qp, r, w, responder_flush(qp, &qp->conn, w));
}

/* Publish the completion of a receive that failed with the WR, if any. */
static void execute_publish(struct receipt *rc)
{
	if (!rc->conn)
		return;
	responder_publish(rc);
	responder_notify(rc);
}

enum verdict execute_receive(struct urxe_qp *qp, struct run *r,
			     const struct urxe_wqe *w,
			     const struct urxe_seg *src,
			     enum ibv_wc_status failed)
{
	struct requester_end end;
	struct receipt rc;
	enum response resp;
	enum verdict v;

	resp = responder_receive(qp, &qp->conn, w, src, 0, failed, &rc);
	if (likely(!resp)) {
		requester_claim(qp, w, &end);
		if (unlikely(end.claimed && rc.conn->rx.cq.sh == qp->scq->sh))
			responder_order_after(&rc, &end.ref);
		v = requester_finish(qp, w, &end);
		responder_publish(&rc);
		requester_notify(qp, &end);
		responder_notify(&rc);
		return v;
	}
	execute_publish(&rc);
	/* UC has no NAK, but a failed receive breaks the remote QP */
	if (qp->type == IBV_QPT_UC &&
	    (resp == RESP_NAK_INVALID || resp == RESP_NAK_OPERATION))
		conn_break(&qp->conn, RESP_NAK_OPERATION, qp, w);
	return execute_answered(qp, r, w, resp);
}

static enum verdict execute_send(struct urxe_qp *qp, struct run *r,
				 const struct urxe_wqe *w)
{
	struct urxe_seg src[URXE_MAX_SGE];

	if (unlikely(execute_gather(qp, w, 0, src) < 0))
		return execute_fail(r, IBV_WC_LOC_PROT_ERR);
	execute_arrives(qp, w);
	return execute_receive(qp, r, w, src, IBV_WC_SUCCESS);
}

/*
 * The WRITE part was refused: the receive fails, too (IB 11.6.2, local access
 * error).
 */
static void execute_write_imm_refused(struct urxe_qp *qp,
				      const struct urxe_wqe *w)
{
	struct receipt rc;

	responder_receive(qp, &qp->conn, w, NULL, 0, IBV_WC_LOC_ACCESS_ERR,
			  &rc);
	execute_publish(&rc);
}

/* The write comes first, but only if a receive is posted. */
static enum verdict execute_write_imm(struct urxe_qp *qp, struct run *r,
				      const struct urxe_wqe *w)
{
	struct urxe_seg src[URXE_MAX_SGE], dst;
	enum response resp;
	int n;

	n = execute_gather(qp, w, 0, src);
	if (unlikely(n < 0))
		return execute_fail(r, IBV_WC_LOC_PROT_ERR);
	execute_arrives(qp, w);
	if (!responder_has_receive(&qp->conn))
		return execute_answered(qp, r, w, RESP_RNR);
	resp = responder_access(&qp->conn, w->rkey, w->remote_addr, w->length,
				IBV_ACCESS_REMOTE_WRITE, &dst, NULL);
	if (!resp && w->length)
		resp = execute_move(qp, w, &dst, src, n);
	if (likely(!resp))
		return execute_receive(qp, r, w, NULL, IBV_WC_SUCCESS);
	if (qp->type != IBV_QPT_UC &&
	    (resp == RESP_NAK_ACCESS || resp == RESP_NAK_OPERATION))
		execute_write_imm_refused(qp, w);
	return execute_answered(qp, r, w, resp);
}

/*
 * Class J error (IB 9.9.6.3): the receive and the responder's QP fail,
 * without a NAK or an ACK.  The requester repeats the request until its
 * retries are exhausted.
 */
static enum response execute_send_inv_refused(struct urxe_qp *qp,
					      const struct urxe_wqe *w)
{
	enum response resp;
	struct receipt rc;

	resp = responder_receive(qp, &qp->conn, w, NULL, 0,
				 IBV_WC_REM_INV_REQ_ERR, &rc);
	execute_publish(&rc);
	if (resp)
		return resp;
	why_note(INVALIDATE, w->imm, qp->conn.qpn);
	conn_break(&qp->conn, RESP_NAK_OPERATION, qp, w);
	return RESP_SILENCE;
}

/*
 * SEND WITH INVALIDATE: the key is invalid before the receive completes.
 *
 * bind_invalidate() waits, with the guard lowered, so the connection and the
 * SGEs are looked up again afterwards.  w->inv records the result: if the WR
 * is retried, because the SRQ is empty by then, the key is not invalidated
 * again.
 */
static enum verdict execute_send_inv(struct urxe_qp *qp, struct run *r,
				     struct urxe_wqe *w)
{
	struct urxe_seg src[URXE_MAX_SGE];
	enum response resp;

	/* memory that is gone is found before the key is invalidated */
	if (execute_gather(qp, w, 0, src) < 0 ||
	    !transfer_can_read(src, w->length))
		return execute_fail(r, IBV_WC_LOC_PROT_ERR);
	execute_arrives(qp, w);
	if (!responder_has_receive(&qp->conn))
		return execute_answered(qp, r, w, RESP_RNR);
	if (w->inv <= URXE_INV_BUSY) {
		w->inv = bind_invalidate(qp, conn_key_peer(&qp->conn),
					 qp->conn.qpn, qp->conn.pd, w->imm,
					 w->inv == URXE_INV_BUSY);
		if (w->inv == URXE_INV_BUSY)
			return execute_answered(qp, r, w, RESP_SILENCE);
		resp = conn_ready(qp, w, false);
		if (resp)
			return execute_answered(qp, r, w, resp);
		if (execute_gather(qp, w, 0, src) < 0)
			return execute_fail(r, IBV_WC_LOC_PROT_ERR);
	}
	if (w->inv == URXE_INV_FAILED)
		return execute_answered(qp, r, w,
					execute_send_inv_refused(qp, w));
	return execute_receive(qp, r, w, src, IBV_WC_SUCCESS);
}

/* Check a datagram.  False: a local error; r->status is set. */
static bool execute_check_datagram(struct urxe_qp *qp, struct run *r,
				   const struct urxe_wqe *w)
{
	/* IB 9.8.1: one packet */
	if (unlikely(w->length > 1ull << qp->mtu_shift)) {
		why_note(DATAGRAM, w->length, 1u << qp->mtu_shift);
		r->status = IBV_WC_LOC_LEN_ERR;
		return false;
	}
	if (likely(!w->foreign_ah))
		return true;
	why_note(AH_PD, qp->sh->pd);
	r->status = IBV_WC_LOC_QP_OP_ERR;
	return false;
}

/* Send a datagram to each QP that accepts it; there may be none. */
static enum verdict execute_datagram(struct urxe_qp *qp, struct run *r,
				     const struct urxe_wqe *w)
{
	struct urxe_seg src[URXE_MAX_SGE + 1];
	struct requester_end end;
	struct receipt rc;
	enum verdict v;

	if (!execute_check_datagram(qp, r, w))
		return WR_FAILED;
	if (unlikely(execute_gather(qp, w, 0, src + 1) < 0))
		return execute_fail(r, IBV_WC_LOC_PROT_ERR);
	requester_claim(qp, w, &end);
	ud_send(qp, w, src, &rc);
	v = requester_finish(qp, w, &end);
	if (rc.conn)
		responder_publish(&rc);
	requester_notify(qp, &end);
	responder_notify(&rc);
	return v;
}

/* LOCAL_INV and BIND_MW. */
static enum verdict execute_local(struct urxe_qp *qp, struct run *r,
				  const struct urxe_wqe *w)
{
	if (w->opcode == IBV_WR_BIND_MW ? bind_execute(qp, w) :
					  bind_invalidate_local(qp, w->imm))
		return WR_DONE;
	return execute_fail(r, IBV_WC_MW_BIND_ERR);
}

static enum verdict __attribute__((cold))
execute_too_long(const struct urxe_qp *qp, struct run *r,
		 const struct urxe_wqe *w)
{
	why_note(TOO_LONG, w->length, qp->sq.max_msg);
	return execute_fail(r, IBV_WC_LOC_LEN_ERR);
}

enum verdict execute_lost(struct urxe_qp *qp, struct run *r,
			  const struct urxe_wqe *w)
{
	if (sq_too_long(&qp->sq, w))
		return execute_too_long(qp, r, w);
	if (qp->type == IBV_QPT_UD && !execute_check_datagram(qp, r, w))
		return WR_FAILED;
	return execute_local_check(qp, r, w) ? WR_DROPPED : WR_FAILED;
}

static enum verdict __attribute__((cold, noinline))
execute_unknown(struct run *r, const struct urxe_wqe *w)
{
	why_note(OPCODE, w->opcode);
	return execute_fail(r, IBV_WC_LOC_QP_OP_ERR);
}

enum verdict execute(struct urxe_qp *qp, struct run *r, struct urxe_wqe *w)
{
	enum response resp;
	enum verdict v;

	if (unlikely(sq_too_long(&qp->sq, w)))
		return execute_too_long(qp, r, w);
	if (unlikely(wqe_is_local(w)))
		return execute_local(qp, r, w);
	if (unlikely(qp->type == IBV_QPT_UD))
		return execute_datagram(qp, r, w);
	resp = conn_ready(qp, w, r->batch.n);
	if (unlikely(resp == RESP_OTHER)) {
		v = requester_send_batch(qp, r);
		if (v != WR_DONE)
			return v;
		resp = conn_ready(qp, w, false);
	}
	if (unlikely(resp))
		return execute_local_check(qp, r, w) ?
			       execute_answered(qp, r, w, resp) :
			       WR_FAILED;
	switch (w->opcode) {
	case IBV_WR_RDMA_WRITE:
		return execute_write(qp, r, w);
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return execute_write_imm(qp, r, w);
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return execute_send(qp, r, w);
	case IBV_WR_RDMA_READ:
		return execute_read(qp, r, w);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return execute_atomic(qp, r, w);
	case IBV_WR_SEND_WITH_INV:
		return execute_send_inv(qp, r, w);
	case URXE_WR_ATOMIC_WRITE:
		return execute_atomic_write(qp, r, w);
	case URXE_WR_FLUSH:
		return execute_flush(qp, r, w);
	}
	return execute_unknown(r, w);
}
