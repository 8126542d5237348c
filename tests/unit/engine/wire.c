// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "engine/exec/requester.h"
#include "shared/guard.h"
#include "wire.h"

struct wire *wire_of(const struct urxe_qp *qp)
{
	return qp->transport_data;
}

static enum verdict wire_begin(struct urxe_qp *qp, struct run *r,
			       struct urxe_wqe *w)
{
	struct wire *wire = wire_of(qp);

	ck_assert_ptr_eq(w, sq_slot(&qp->sq, qp->sq.begun));
	wire->begun++;
	if (wire->executes && w->opcode == IBV_WR_RDMA_WRITE)
		return execute(qp, r, w);
	if (wire->verdict == WR_IN_FLIGHT)
		wire->flight[wire->n++] = qp->sq.begun;
	r->status = wire->status;
	return wire->verdict;
}

static bool wire_follows(const struct urxe_qp *qp, const struct urxe_wqe *first,
			 const struct urxe_wqe *second)
{
	(void)first;
	(void)second;
	return wire_of(qp)->follows;
}

static void carry_out(struct urxe_qp *qp, uint32_t index)
{
	struct run r;

	run_begin(&r, qp);
	qp_guard_raise(qp, GUARD_SEND | GUARD_ANY_RKEY);
	ck_assert_int_eq(execute(qp, &r, sq_slot(&qp->sq, index)), WR_DONE);
	guard_lower(qp->guard);
}

void wire_finish(struct urxe_qp *qp, unsigned int i, enum ibv_wc_status status)
{
	struct wire *wire = wire_of(qp);
	uint32_t index = wire->flight[i];

	ck_assert_uint_lt(i, wire->n);
	memmove(&wire->flight[i], &wire->flight[i + 1],
		(--wire->n - i) * sizeof(index));
	if (wire->delivers)
		carry_out(qp, index);
	requester_answer(qp, index, status);
	requester_run(qp);
}

static uint64_t wire_progress(struct urxe_qp *qp, uint64_t now)
{
	struct wire *wire = wire_of(qp);

	for (; wire->allowed && wire->n; wire->allowed--)
		wire_finish(qp, wire->newest_first ? wire->n - 1 : 0,
			    IBV_WC_SUCCESS);
	return wire->n ? now + 1000000 : UINT64_MAX;
}

static void wire_cancel(struct urxe_qp *qp)
{
	struct wire *wire = wire_of(qp);

	wire->cancels += wire->n > 0;
	wire->cancelled += wire->n;
	wire->n = 0;
}

const struct urxe_transport wire_transport = {
	.begin = wire_begin,
	.follows = wire_follows,
	.progress = wire_progress,
	.cancel = wire_cancel,
};

struct engine *wire_new(struct wire *wire)
{
	struct engine *e = engine_new();

	memset(wire, 0, sizeof(*wire));
	wire->verdict = WR_IN_FLIGHT;
	e->qp->transport_data = wire;
	e->qp->transport = &wire_transport;
	return e;
}

void wire_answer(struct engine *e, unsigned int i, enum ibv_wc_status status)
{
	urxe_lock(&e->qp->lock);
	wire_finish(e->qp, i, status);
	urxe_unlock(&e->qp->lock);
}

void wire_allow(struct engine *e, unsigned int n)
{
	urxe_lock(&e->qp->lock);
	wire_of(e->qp)->allowed += n;
	urxe_unlock(&e->qp->lock);
}

void wire_verdict(struct engine *e, enum verdict v, enum ibv_wc_status status)
{
	urxe_lock(&e->qp->lock);
	wire_of(e->qp)->verdict = v;
	wire_of(e->qp)->status = status;
	urxe_unlock(&e->qp->lock);
}

struct wire wire_look(struct engine *e)
{
	struct wire wire;

	urxe_lock(&e->qp->lock);
	wire = *wire_of(e->qp);
	urxe_unlock(&e->qp->lock);
	return wire;
}

unsigned int wire_flying(struct engine *e)
{
	return wire_look(e).n;
}

void wire_push(struct engine *e, uint8_t opcode, uint64_t wr_id,
	       unsigned int flags)
{
	ck_assert_int_eq(
		post_bare(e->qp, opcode, wr_id, flags | IBV_SEND_SIGNALED), 0);
}

uint32_t wire_stalled(struct engine *e)
{
	return atomic_load(&e->cq->stalled);
}
