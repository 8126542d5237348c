// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * WRs that end with an error by a rule, as if the requester or the responder
 * had found it.
 *
 * This is a transport (struct urxe_transport, engine/qp/flight.h) in front of the
 * one that the QP has, if any. A WR that no rule matches is passed on to
 * that, or to execute(). The functions are called with qp->lock held.
 *
 * The responder is not notified of errors that the requester detects (LOC_*,
 * a lost response). An error that the responder answers with (REM_*) has the
 * responder's effects, too: if the message consumes a receive, the receive
 * fails, and the responder's QP goes to ERR.
 */
#include <stdlib.h>

#include "engine/qp/comp_cntr.h"
#include "engine/qp/flight.h"
#include "engine/core/log.h"
#include "engine/exec/requester.h"
#include "engine/exec/responder.h"
#include "engine/qp/why.h"
#include "engine/qp/wqe.h"
#include "fault.h"

struct fault_transport {
	struct faults *faults;
	const struct urxe_transport *transport; /* the QP's own, or NULL */
	uint32_t index; /* slot of the WR matched last ... */
	enum ibv_wc_status status; /* ... its status; SUCCESS: no rule */
	bool fresh; /* no WR of the queue was matched yet */
	bool late; /* it fails when earlier WRs are done */
};

/* Return whether @status is the requester's report of a NAK. */
static bool is_answer(enum ibv_wc_status status)
{
	return status == IBV_WC_REM_INV_REQ_ERR ||
	       status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_OP_ERR;
}

/* Return the status of the receive whose sender gets @status (IB 11.6.2). */
static enum ibv_wc_status receive_status(enum ibv_wc_status status)
{
	if (status == IBV_WC_REM_INV_REQ_ERR)
		return IBV_WC_LOC_LEN_ERR;
	return status == IBV_WC_REM_ACCESS_ERR ? IBV_WC_LOC_ACCESS_ERR :
						 IBV_WC_LOC_PROT_ERR;
}

static enum response nak_of(enum ibv_wc_status status)
{
	if (status == IBV_WC_REM_INV_REQ_ERR)
		return RESP_NAK_INVALID;
	return status == IBV_WC_REM_ACCESS_ERR ? RESP_NAK_ACCESS :
						 RESP_NAK_OPERATION;
}

static bool takes_receive(const struct urxe_wqe *w)
{
	return WQE_BIT(w->opcode) &
	       (WQE_SEND_OPS | WQE_BIT(IBV_WR_RDMA_WRITE_WITH_IMM));
}

/*
 * Have the responder refuse @w; the guard is raised. Return RESP_ACK if it
 * did, else the reason why @w does not reach it.
 */
static enum response fault_transport_refuse(struct urxe_qp *qp,
					    const struct urxe_wqe *w,
					    enum ibv_wc_status status)
{
	enum response resp = conn_ready(qp, w, false);
	struct receipt rc = { 0 };

	if (resp)
		return resp;
	if (takes_receive(w)) {
		if (!responder_has_receive(&qp->conn))
			return RESP_RNR;
		resp = responder_receive(qp, &qp->conn, w, NULL, 0,
					 receive_status(status), &rc);
		if (resp)
			return resp;
		responder_publish(&rc);
		responder_notify(&rc);
	}
	comp_cntr_remote(&qp->conn, w, true);
	why_note(FAULT, 0);
	conn_break(&qp->conn, nak_of(status), qp, w);
	return RESP_ACK;
}

static enum verdict fault_transport_fail_now(struct urxe_qp *qp, struct run *r,
					     const struct urxe_wqe *w,
					     enum ibv_wc_status status)
{
	/* a responder on another host is not notified */
	bool tells = is_answer(status) && !qp->wire;
	enum response resp = tells ? fault_transport_refuse(qp, w, status) :
				     RESP_ACK;

	if (resp)
		return execute_answered(qp, r, w, resp);
	why_note(FAULT, 0);
	r->status = status;
	return WR_FAILED;
}

/*
 * Fail @w now; or, if it is the responder that refuses @w, when the WRs in
 * flight before it are done.
 */
static enum verdict fault_transport_fail(struct urxe_qp *qp, struct run *r,
					 const struct urxe_wqe *w,
					 struct fault_transport *b)
{
	b->late = is_answer(b->status) && !qp->wire &&
		  qp->sq.done != qp->sq.begun;
	return b->late ? WR_IN_FLIGHT :
			 fault_transport_fail_now(qp, r, w, b->status);
}

/*
 * Match @w against the rules. Return the status with which it is to end,
 * IBV_WC_SUCCESS if no rule strikes.
 */
static enum ibv_wc_status fault_transport_match(struct fault_transport *b,
						const struct urxe_qp *qp,
						const struct urxe_wqe *w)
{
	struct fault_subject s = fault_subject_qp(qp);
	const struct fault_rule *rule;

	s.op = FAULT_OP(w->opcode);
	s.wr_id = w->wr_id;
	s.has_wr_id = true;
	rule = fault_of_wr(b->faults, &s);
	if (!rule)
		return IBV_WC_SUCCESS;
	urxe_note(
		"injected fault: wr_id 0x%llx on QP 0x%x completes with %s (rule \"%s\")",
		(unsigned long long)w->wr_id, qp->qpn,
		reason_status_name(rule->value), rule->text);
	return rule->value;
}

static enum verdict fault_transport_begin(struct urxe_qp *qp, struct run *r,
					  struct urxe_wqe *w)
{
	struct fault_transport *b = qp->transport_stacked;
	const int32_t ahead = (int32_t)(qp->sq.begun - b->index);

	if (b->late && ahead > 0)
		return WR_IN_FLIGHT; /* flushed behind the late WR */
	b->late = false;
	/* a WR that was parked and is begun again is not counted twice */
	if (b->fresh || ahead > 0) {
		b->fresh = false;
		b->index = qp->sq.begun;
		b->status = fault_transport_match(b, qp, w);
	}
	if (unlikely(b->status) && b->index == qp->sq.begun)
		return fault_transport_fail(qp, r, w, b);
	return b->transport ? b->transport->begin(qp, r, w) : execute(qp, r, w);
}

static bool fault_transport_follows(const struct urxe_qp *qp,
				    const struct urxe_wqe *first,
				    const struct urxe_wqe *second)
{
	const struct fault_transport *b = qp->transport_stacked;

	if (b->late && first == sq_slot(&qp->sq, b->index))
		return false;
	return b->transport && b->transport->follows(qp, first, second);
}

/* Fail the late WR: all WRs before it are completed. */
static void fault_transport_answer(struct urxe_qp *qp,
				   struct fault_transport *b)
{
	const struct urxe_wqe *w = sq_slot(&qp->sq, b->index);
	enum verdict v;
	struct run r;

	b->late = false;
	run_begin(&r, qp);
	qp_guard_raise(qp, requester_uses(w));
	v = fault_transport_fail_now(qp, &r, w, b->status);
	if (v != WR_FAILED) {
		requester_park_flight(qp, &r, b->index, v);
		return;
	}
	guard_lower(qp->guard);
	requester_answer(qp, b->index, r.status);
	requester_run(qp);
}

static uint64_t fault_transport_progress(struct urxe_qp *qp, uint64_t now)
{
	struct fault_transport *b = qp->transport_stacked;
	uint64_t next = UINT64_MAX;

	if (b->transport)
		next = b->transport->progress(qp, now);
	if (b->late && qp->sq.done == b->index && qp->sq.begun != b->index)
		fault_transport_answer(qp, b);
	return next;
}

static void fault_transport_cancel(struct urxe_qp *qp)
{
	struct fault_transport *b = qp->transport_stacked;

	b->late = false;
	b->fresh = true;
	if (b->transport)
		b->transport->cancel(qp);
}

static const struct urxe_transport fault_transport_ops = {
	.begin = fault_transport_begin,
	.follows = fault_transport_follows,
	.progress = fault_transport_progress,
	.cancel = fault_transport_cancel,
};

bool fault_watch_wrs(struct faults *f, struct urxe_qp *qp)
{
	struct fault_transport *b = calloc(1, sizeof(*b));

	if (!b)
		return false;
	b->faults = f;
	b->transport = qp->transport;
	b->fresh = true;
	qp->transport_stacked = b;
	qp->transport_under = &b->transport;
	qp->transport = &fault_transport_ops;
	return true;
}
