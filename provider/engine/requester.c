// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The requester executes the responder.
 *
 * ibv_post_send puts WRs into the send queue and runs it: for each WR the
 * requester resolves its own SGEs, asks the responder's shared state what
 * that NIC would answer (responder.c), copies once (transfer.c) and completes.
 * No other thread takes part.  While it does so its guard is up (guard.h).
 *
 * Consecutive RDMA WRITEs to private memory of another process are collected
 * into one process_vm_writev; they count as executed when they are collected
 * and are completed when the call has returned.  Everything else first sends
 * such a collection off, so that requests stay in order.
 */
#include "bind.h"
#include "counters.h"
#include "flush.h"
#include "log.h"
#include "odp.h"
#include "qp.h"
#include "quiesce.h"
#include "requester.h"
#include "responder.h"
#include "service.h"
#include "ud.h"

enum verdict {
	DONE, /* complete it */
	DROPPED, /* nobody heard it: complete it all the same */
	COLLECTED, /* completed when the batch is sent */
	PARKED_RNR,
	PARKED_TRANSPORT,
	FAILED, /* with run.status */
};

/* One pass over the queue. */
struct run {
	struct transfer_batch batch;
	enum ibv_wc_status status; /* of the WR that failed */
};

/* ------------------------------------------------------- completing */

static const uint8_t wc_opcode[] = {
	[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
	[IBV_WR_SEND] = IBV_WC_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
	[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
	[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
	[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
	[URXE_WR_FLUSH] = URXE_WC_FLUSH,
	[URXE_WR_ATOMIC_WRITE] = URXE_WC_ATOMIC_WRITE,
};

void requester_complete(struct urxe_qp *qp, uint32_t index,
			enum ibv_wc_status status)
{
	const struct urxe_wqe *w = sq_slot(&qp->sq, index);
	struct urxe_cqe_ref ref;
	struct urxe_cqe *e;

	if (unlikely(!cq_begin(&qp->scq->view, &ref))) {
		qp_fatal(qp);
		return;
	}
	e = ref.slot.cqe;
	e->wr_id = w->wr_id;
	e->qpn = qp->qpn;
	e->byte_len = w->length;
	e->imm = status; /* vendor_err */
	e->src_qp = 0;
	e->wqe = index;
	e->status = status;
	e->opcode = wc_opcode[w->opcode];
	e->wc_flags = 0;
	e->inline_len = 0;
	cq_end(&qp->scq->view, &ref, false);
}

void requester_fail(struct urxe_qp *qp, enum ibv_wc_status status)
{
	bool sqe = qp_is_unreliable(qp);

	urxe_why("QP 0x%x: a send failed: %s (%d)", qp->qpn,
		 urxe_status_name(status), (int)status);
	guard_raise(qp->guard); /* we produce into a CQ */
	requester_complete(qp, qp->sq.comp, status);
	guard_lower(qp->guard);
	qp->sq.comp++;
	/* IB 10.3.1.6: an unreliable QP goes on receiving */
	if (!qp_set_error(qp, sqe ? IBV_QPS_SQE : IBV_QPS_ERR))
		sqe = false; /* a NAK was faster */
	if (sqe)
		flush_sq(qp);
	else
		flush_qp(qp);
}

/* Work for this side alone: no packet goes out. */
static bool is_local(const struct urxe_wqe *w)
{
	return w->opcode == IBV_WR_BIND_MW || w->opcode == IBV_WR_LOCAL_INV;
}

/* A request was served: the PSNs of its packets are used. */
static void requester_advance(struct urxe_qp *qp, uint64_t length)
{
	uint64_t packets = 1;

	if (length)
		packets = (length + (1ull << qp->mtu_shift) - 1) >>
			  qp->mtu_shift;
	qp->psn = (qp->psn + packets) & URXE_PSN_MASK;
	qp->count.packets += packets;
	qp->count.bytes += length;
	if (qp->conn.sh)
		atomic_store_explicit(&qp->conn.sh->epsn, qp->psn,
				      memory_order_relaxed);
}

/* The WR at comp was served. */
static void retire(struct urxe_qp *qp)
{
	const struct urxe_wqe *w = sq_slot(&qp->sq, qp->sq.comp);

	if (likely(!is_local(w)))
		requester_advance(qp, w->opcode == URXE_WR_FLUSH ? 0 : w->length);
	if (w->flags & IBV_SEND_SIGNALED)
		requester_complete(qp, qp->sq.comp, IBV_WC_SUCCESS);
	qp->sq.comp++;
}

/* Everything executed so far was served. */
static void retire_executed(struct urxe_qp *qp)
{
	if (unlikely(qp->stall.kind != STALL_NONE))
		stall_end(qp);
	while (qp->sq.comp != qp->sq.exec)
		retire(qp);
}

/* ------------------------------------------------------- local memory */

/* The WR's bytes.  The number of runs, or -1: a key does not hold. */
static int gather(struct urxe_qp *qp, const struct urxe_wqe *w, uint32_t access,
		  struct urxe_seg *seg, bool *mapped)
{
	const struct urxe_key *k;
	int i;

	*mapped = true;
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
			urxe_why("lkey 0x%x of a send on QP 0x%x does not cover %u bytes at 0x%llx%s",
				 s->lkey, qp->qpn, s->length,
				 (unsigned long long)s->addr,
				 access ? " with local write access" : "");
			return -1;
		}
		if (unlikely(k->flags & URXE_MR_ODP) &&
		    mem_is_mine(qp->ctx->self, k) &&
		    !odp_fault(k, s->addr, s->length, access))
			return -1;
		mem_reach(qp->ctx->self, k, s->addr, s->length, &seg[i]);
		*mapped &= seg[i].ptr != NULL;
	}
	return w->num_sge;
}

/* ------------------------------------------------------- answers */

static enum verdict fail(struct run *r, enum ibv_wc_status status)
{
	r->status = status;
	return FAILED;
}

/*
 * Unreliable connections have no answers: what cannot be served is dropped
 * (IB 9.8.3).  A receive that failed broke the other end all the same.
 */
static enum verdict unanswered(struct urxe_qp *qp, enum response resp,
			       bool receive)
{
	if (receive && (resp == RESP_NAK_INVALID || resp == RESP_NAK_OPERATION))
		conn_break(&qp->conn, RESP_NAK_OPERATION);
	return resp ? DROPPED : DONE;
}

/* What a response means for the requester; IB 9.7.5.2 and 11.6.2. */
static enum verdict answered(struct urxe_qp *qp, struct run *r,
			     enum response resp)
{
	if (unlikely(qp->type == IBV_QPT_UC))
		return unanswered(qp, resp, false);
	switch (resp) {
	case RESP_ACK:
		return DONE;
	case RESP_RNR:
		return PARKED_RNR;
	case RESP_SILENCE:
	case RESP_NAK_SEQUENCE:
		return PARKED_TRANSPORT;
	case RESP_NAK_INVALID:
		conn_break(&qp->conn, resp);
		return fail(r, IBV_WC_REM_INV_REQ_ERR);
	case RESP_NAK_ACCESS:
		conn_break(&qp->conn, resp);
		return fail(r, IBV_WC_REM_ACCESS_ERR);
	case RESP_NAK_OPERATION:
		conn_break(&qp->conn, resp);
		return fail(r, IBV_WC_REM_OP_ERR);
	case RESP_OTHER:
		break;
	}
	return fail(r, IBV_WC_FATAL_ERR);
}

/*
 * Send the collection off and complete its WRs.  If it stops in the middle,
 * the WRs before that point are complete and the one there has failed.
 */
static enum verdict send_batch(struct urxe_qp *qp, struct run *r)
{
	struct urxe_sq *sq = &qp->sq;
	enum transfer_status status;
	uint64_t done;

	if (likely(!r->batch.n))
		return DONE;
	status = transfer_flush(&r->batch, &done);
	if (likely(!status) || qp->type == IBV_QPT_UC) {
		retire_executed(qp);
		return DONE;
	}
	while (sq->comp != sq->exec) {
		uint64_t len = sq_slot(sq, sq->comp)->length;

		if (len > done)
			break;
		done -= len;
		stall_end(qp);
		retire(qp);
	}
	sq->exec = sq->comp;
	return answered(qp, r, moved(status));
}

/* ------------------------------------------------------- operations */

static void collect(struct run *r, const struct urxe_seg *dst,
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

static enum verdict do_write(struct urxe_qp *qp, struct run *r,
			     const struct urxe_wqe *w, bool may_collect)
{
	struct urxe_seg src[URXE_MAX_SGE], dst;
	enum response resp;
	enum verdict v;
	bool mapped;
	int n;

	n = gather(qp, w, 0, src, &mapped);
	if (unlikely(n < 0))
		return fail(r, IBV_WC_LOC_PROT_ERR);
	resp = responder_access(&qp->conn, w->rkey, w->remote_addr, w->length,
				IBV_ACCESS_REMOTE_WRITE, &dst, NULL);
	if (unlikely(resp))
		return answered(qp, r, resp);
	if (unlikely(!w->length))
		return DONE;
	if (may_collect && !dst.ptr && dst.pid && mapped) {
		if (r->batch.n && (transfer_parts(&r->batch, &dst) ||
				   r->batch.n + n > TRANSFER_IOVS)) {
			v = send_batch(qp, r);
			if (v != DONE)
				return v;
		}
		collect(r, &dst, src, n);
		return COLLECTED;
	}
	v = send_batch(qp, r); /* earlier ones first */
	if (unlikely(v != DONE))
		return v;
	if (likely(dst.ptr && n == 1 && src[0].ptr)) {
		transfer_local(dst.ptr, src[0].ptr, w->length);
		return DONE;
	}
	return answered(qp, r, moved(transfer(&dst, src, w->length, qp->ctx)));
}

static enum verdict do_read(struct urxe_qp *qp, struct run *r,
			    const struct urxe_wqe *w)
{
	struct urxe_seg dst[URXE_MAX_SGE], src;
	enum response resp;
	bool mapped;

	if (!qp->attr.max_rd_atomic)
		return fail(r, IBV_WC_LOC_QP_OP_ERR);
	if (gather(qp, w, IBV_ACCESS_LOCAL_WRITE, dst, &mapped) < 0)
		return fail(r, IBV_WC_LOC_PROT_ERR);
	if (!qp->conn.sh->max_dest_rd_atomic)
		return answered(qp, r, RESP_NAK_INVALID);
	resp = responder_access(&qp->conn, w->rkey, w->remote_addr, w->length,
				IBV_ACCESS_REMOTE_READ, &src, NULL);
	if (!resp && w->length)
		resp = moved(transfer(dst, &src, w->length, qp->ctx));
	return answered(qp, r, resp);
}

static enum verdict do_atomic(struct urxe_qp *qp, struct run *r,
			      const struct urxe_wqe *w)
{
	struct urxe_seg dst[URXE_MAX_SGE], word, result;
	const struct urxe_key *key;
	enum response resp;
	uint64_t old;
	bool mapped;

	if (!qp->attr.max_rd_atomic)
		return fail(r, IBV_WC_LOC_QP_OP_ERR);
	if (w->length != 8)
		return fail(r, IBV_WC_LOC_LEN_ERR);
	if (gather(qp, w, IBV_ACCESS_LOCAL_WRITE, dst, &mapped) < 0)
		return fail(r, IBV_WC_LOC_PROT_ERR);
	/* IB 9.4.5: naturally aligned */
	if (!qp->conn.sh->max_dest_rd_atomic || w->remote_addr & 7)
		return answered(qp, r, RESP_NAK_INVALID);
	resp = responder_access(&qp->conn, w->rkey, w->remote_addr, 8,
				IBV_ACCESS_REMOTE_ATOMIC, &word, &key);
	/* the key's first byte may itself be misaligned */
	if (!resp && word.va & 7)
		resp = RESP_NAK_INVALID;
	if (!resp)
		resp = responder_atomic(qp, &qp->conn, &word, key, w, &old);
	if (!resp) {
		result.ptr = (char *)&old;
		result.len = 8;
		if (transfer_committed(dst, &result, 8, qp->ctx))
			return fail(r, IBV_WC_LOC_PROT_ERR);
	}
	return answered(qp, r, resp);
}

/* IB A19.4.4: 8 bytes that nobody sees half written. */
static enum verdict do_atomic_write(struct urxe_qp *qp, struct run *r,
				    const struct urxe_wqe *w)
{
	struct urxe_seg src[URXE_MAX_SGE], dst;
	enum response resp;
	uint64_t value;
	bool mapped;

	if (!qp->attr.max_rd_atomic)
		return fail(r, IBV_WC_LOC_QP_OP_ERR);
	if (w->length != 8)
		return fail(r, IBV_WC_LOC_LEN_ERR);
	dst.ptr = (char *)&value;
	dst.len = 8;
	if (!w->num_sge)
		memcpy(&value, w->write_data, 8);
	else if (gather(qp, w, 0, src, &mapped) < 0 ||
		 transfer_committed(&dst, src, 8, qp->ctx))
		return fail(r, IBV_WC_LOC_PROT_ERR);
	if (!qp->conn.sh->max_dest_rd_atomic || w->remote_addr & 7)
		return answered(qp, r, RESP_NAK_INVALID);
	src[0].ptr = (char *)&value;
	src[0].len = 8;
	resp = responder_access(&qp->conn, w->rkey, w->remote_addr, 8,
				IBV_ACCESS_REMOTE_WRITE, &dst, NULL);
	if (!resp)
		resp = moved(transfer(&dst, src, 8, qp->ctx));
	return answered(qp, r, resp);
}

static enum verdict do_flush(struct urxe_qp *qp, struct run *r,
			     const struct urxe_wqe *w)
{
	const uint32_t types = URXE_FLUSH_GLOBAL | URXE_FLUSH_PERSISTENT;

	if (!qp->attr.max_rd_atomic || !w->flush.type ||
	    w->flush.type & ~types || w->flush.level > URXE_FLUSH_MR)
		return fail(r, IBV_WC_LOC_QP_OP_ERR);
	if (!qp->conn.sh->max_dest_rd_atomic)
		return answered(qp, r, RESP_NAK_INVALID);
	return answered(qp, r, responder_flush(qp, w));
}

static enum verdict receive(struct urxe_qp *qp, struct run *r,
			    const struct urxe_wqe *w,
			    const struct urxe_seg *src)
{
	enum response resp = responder_receive(qp, &qp->conn, w, src, 0);

	if (unlikely(resp && qp->type == IBV_QPT_UC))
		return unanswered(qp, resp, true);
	return answered(qp, r, resp);
}

static enum verdict do_send(struct urxe_qp *qp, struct run *r,
			    const struct urxe_wqe *w)
{
	struct urxe_seg src[URXE_MAX_SGE];
	bool mapped;

	if (unlikely(gather(qp, w, 0, src, &mapped) < 0))
		return fail(r, IBV_WC_LOC_PROT_ERR);
	return receive(qp, r, w, src);
}

/* The write comes first, but not without a receive to complete. */
static enum verdict do_write_imm(struct urxe_qp *qp, struct run *r,
				 const struct urxe_wqe *w)
{
	enum verdict v;

	if (!responder_has_receive(&qp->conn))
		return answered(qp, r, RESP_RNR);
	v = do_write(qp, r, w, false);
	return v == DONE ? receive(qp, r, w, NULL) : v;
}

/*
 * The key is gone before the receive completes.  That takes a wait, with the
 * guard down, so what was found before counts no more; and if meanwhile
 * others emptied the SRQ it is not done again when the WR is tried again.
 */
static enum verdict do_send_inv(struct urxe_qp *qp, struct run *r,
				struct urxe_wqe *w)
{
	struct urxe_seg src[URXE_MAX_SGE];
	enum response resp;
	enum verdict v;
	bool mapped;

	if (gather(qp, w, 0, src, &mapped) < 0)
		return fail(r, IBV_WC_LOC_PROT_ERR);
	if (!responder_has_receive(&qp->conn))
		return answered(qp, r, RESP_RNR);
	if (w->inv == URXE_INV_TO_DO) {
		w->inv = responder_invalidate(qp, &qp->conn, w->imm) ?
				 URXE_INV_DONE : URXE_INV_FAILED;
		resp = conn_ready(qp, w, false);
		if (resp)
			return answered(qp, r, resp);
		if (gather(qp, w, 0, src, &mapped) < 0)
			return fail(r, IBV_WC_LOC_PROT_ERR);
	}
	v = receive(qp, r, w, src);
	/* class J: acknowledged, but the responder's QP is at its end */
	if (v == DONE && w->inv == URXE_INV_FAILED)
		conn_break(&qp->conn, RESP_NAK_OPERATION);
	return v;
}

/* A datagram goes to each destination that listens, or nowhere. */
static enum verdict do_datagram(struct urxe_qp *qp, struct run *r,
				const struct urxe_wqe *w)
{
	struct urxe_seg src[URXE_MAX_SGE + 1];
	bool mapped;

	/* IB 9.8.1: one packet */
	if (unlikely(w->length > 1ull << qp->mtu_shift))
		return fail(r, IBV_WC_LOC_LEN_ERR);
	if (unlikely(gather(qp, w, 0, src + 1, &mapped) < 0))
		return fail(r, IBV_WC_LOC_PROT_ERR);
	ud_send(qp, w, src);
	return DONE;
}

static enum verdict do_local(struct urxe_qp *qp, struct run *r,
			     const struct urxe_wqe *w)
{
	enum ibv_wc_status status = w->opcode == IBV_WR_BIND_MW ?
					    bind_execute(qp, w) :
					    bind_invalidate_local(qp, w->imm);

	return status ? fail(r, status) : DONE;
}

/* A NIC reads its own memory first: a silent peer does not hide a fault. */
static bool locally_sound(struct urxe_qp *qp, struct run *r,
			  const struct urxe_wqe *w)
{
	struct urxe_seg seg[URXE_MAX_SGE];
	uint32_t access = 0;
	bool mapped;

	switch (w->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		if (w->length != 8) {
			r->status = IBV_WC_LOC_LEN_ERR;
			return false;
		}
		/* fallthrough */
	case IBV_WR_RDMA_READ:
		access = IBV_ACCESS_LOCAL_WRITE;
		if (!qp->attr.max_rd_atomic) {
			r->status = IBV_WC_LOC_QP_OP_ERR;
			return false;
		}
		break;
	case URXE_WR_FLUSH:
		return true;
	}
	r->status = IBV_WC_LOC_PROT_ERR;
	return gather(qp, w, access, seg, &mapped) >= 0;
}

static enum verdict execute(struct urxe_qp *qp, struct run *r,
			    struct urxe_wqe *w)
{
	enum response resp;
	enum verdict v;

	if (unlikely(w->length > URXE_MAX_MSG && w->opcode != URXE_WR_FLUSH))
		return fail(r, IBV_WC_LOC_LEN_ERR);
	if (unlikely(is_local(w)))
		return do_local(qp, r, w);
	if (unlikely(qp->type == IBV_QPT_UD))
		return do_datagram(qp, r, w);
	resp = conn_ready(qp, w, r->batch.n);
	if (unlikely(resp == RESP_OTHER)) {
		v = send_batch(qp, r);
		if (v != DONE)
			return v;
		resp = conn_ready(qp, w, false);
	}
	if (unlikely(resp))
		return locally_sound(qp, r, w) ? answered(qp, r, resp) : FAILED;
	switch (w->opcode) {
	case IBV_WR_RDMA_WRITE:
		return do_write(qp, r, w, true);
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return do_write_imm(qp, r, w);
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return do_send(qp, r, w);
	case IBV_WR_RDMA_READ:
		return do_read(qp, r, w);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return do_atomic(qp, r, w);
	case IBV_WR_SEND_WITH_INV:
		return do_send_inv(qp, r, w);
	case URXE_WR_ATOMIC_WRITE:
		return do_atomic_write(qp, r, w);
	case URXE_WR_FLUSH:
		return do_flush(qp, r, w);
	}
	return fail(r, IBV_WC_LOC_QP_OP_ERR);
}

/* ------------------------------------------------------- the loop */

/* Park, or fail if no retries are allowed.  What could we do about it? */
static void park(struct urxe_qp *qp, enum verdict v)
{
	bool rnr = v == PARKED_RNR;

	if (!stall_begin(qp, rnr ? STALL_RNR : STALL_TRANSPORT)) {
		requester_fail(qp, rnr ? IBV_WC_RNR_RETRY_EXC_ERR :
					 IBV_WC_RETRY_EXC_ERR);
		return;
	}
	if (!rnr)
		return;
	/* the responder's post_recv looks for us after it published */
	responder_wait_receive(&qp->conn, qp->ctx->slot);
	if (responder_has_receive(&qp->conn))
		service_wake(qp->ctx->arena);
}

static bool may_run(const struct urxe_qp *qp)
{
	enum ibv_qp_state state = qp_state(qp);

	/* draining: what had been started is finished */
	return state == IBV_QPS_RTS ||
	       (state == IBV_QPS_SQD && qp->stall.kind != STALL_NONE);
}

static enum verdict run_queue(struct urxe_qp *qp, struct run *r)
{
	struct urxe_sq *sq = &qp->sq;
	enum verdict v = DONE;
	struct urxe_wqe *w;

	while (sq->exec != sq->prod && may_run(qp)) {
		w = sq_slot(sq, sq->exec);
		if (r->batch.n && w->opcode != IBV_WR_RDMA_WRITE) {
			v = send_batch(qp, r);
			if (unlikely(v != DONE))
				return v;
		}
		v = execute(qp, r, w);
		if (unlikely(v > COLLECTED))
			break;
		sq->exec++;
		/* completions are in order: not before what is collected */
		if (v != COLLECTED && !r->batch.n)
			retire_executed(qp);
	}
	if (v > COLLECTED && r->batch.n) {
		enum verdict b = send_batch(qp, r);

		return b == DONE ? v : b;
	}
	return v > COLLECTED ? v : send_batch(qp, r);
}

void requester_run(struct urxe_qp *qp)
{
	struct run r;
	enum verdict v;

	if (qp->sq.exec == qp->sq.prod)
		return;
	switch (qp_state(qp)) {
	case IBV_QPS_ERR:
		flush_qp(qp);
		return;
	case IBV_QPS_SQE:
		flush_sq(qp);
		return;
	default:
		break;
	}
	transfer_begin(&r.batch, qp->ctx, false);
	guard_raise(qp->guard);
	v = run_queue(qp, &r);
	guard_lower(qp->guard);
	if (unlikely(qp->count.packets >= COUNTERS_EVERY))
		counters_flush(qp);
	if (unlikely(v == PARKED_RNR || v == PARKED_TRANSPORT))
		park(qp, v);
	else if (unlikely(v == FAILED))
		requester_fail(qp, r.status);
	else if (unlikely(qp->sqd_notify))
		qp_drained(qp);
}
