// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Time that messages take; timing.h describes the model. The operations in
 * struct urxe_transport are called with qp->lock held.
 */
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "base/clock.h"
#include "chaos/adversary.h"
#include "engine/core/process.h"
#include "engine/exec/requester.h"
#include "engine/qp/flight.h"
#include "engine/qp/wqe.h"
#include "fabric/profile.h"
#include "timing.h"

/* Ethernet, IPv4, UDP, BTH, ICRC, FCS, preamble and gap; or LRH, BTH, CRCs */
#define ETHERNET_BYTES 82
#define INFINIBAND_BYTES 26
/* Limit of values from shared memory: a port is busy for no longer */
#define BUSY_NS 10000000000ull

enum stage {
	STAGE_NONE,
	STAGE_PARKED, /* queued again; it has arrived before */
	STAGE_FAILED, /* to be completed when those before it are */
	STAGE_SENT,
	STAGE_ARRIVED
};

struct timed_wr {
	uint32_t index; /* of its send queue slot */
	enum stage stage;
	uint64_t due; /* when the next step is */
	uint32_t ack; /* ns from arrival to the response */
};

struct timing {
	uint64_t last; /* arrival of the WR that was begun last */
	int32_t pid; /* process that began the WRs in flight */
	uint32_t mask;
	struct timed_wr wr[]; /* indexed by slot & mask */
};

static struct timed_wr *timed_wr_at(const struct urxe_qp *qp, uint32_t index)
{
	struct timing *t = qp->transport_data;

	return &t->wr[index & t->mask];
}

/* ------------------------------------------------------- the model */

/*
 * Reserve @ns of the time of a port, not before @from. Return when they begin.
 */
static uint64_t port_reserve(_Atomic uint64_t *free_at, uint64_t from,
			     uint64_t ns)
{
	uint64_t free = load_relaxed(free_at), begin;

	do {
		begin = free > from && free - from < BUSY_NS ? free : from;
	} while (!cas_relaxed(free_at, &free, begin + ns));
	return begin;
}

/* Bytes of a message with its headers. */
static uint64_t wire_bytes(const struct urxe_qp *qp, uint64_t length)
{
	const uint64_t packets = (length >> qp->mtu_shift) +
				 !!(length & ((1ull << qp->mtu_shift) - 1));

	return length + (packets ? packets : 1) * (qp->ctx->hca->infiniband ?
							   INFINIBAND_BYTES :
							   ETHERNET_BYTES);
}

static void timed_wr_plan(struct urxe_qp *qp, struct timed_wr *m,
			  const struct urxe_wqe *w, uint64_t now)
{
	const bool fetches = w->opcode == IBV_WR_RDMA_READ;
	struct urxe_hca *own = qp->ctx->hca, *tx = own, *rx = own;
	const struct urxe_peer *peer = conn_key_peer(&qp->conn);
	struct timing *t = qp->transport_data;
	uint64_t latency, ns, begin;
	uint32_t rate;

	/* a datagram's destination is not known yet */
	if (peer && fetches)
		tx = peer->hca;
	else if (peer)
		rx = peer->hca;
	rate = hca_rate(tx) < hca_rate(rx) ? hca_rate(tx) : hca_rate(rx);
	latency = (uint64_t)own->latency + (peer ? peer->hca : own)->latency;
	ns = wire_bytes(qp, wqe_wire_length(w)) * 80 / rate;
	begin = port_reserve(&tx->sends_at, now + (fetches ? latency : 0), ns);
	if (peer)
		begin = port_reserve(&rx->receives_at, begin, ns);
	m->due = begin + ns + latency;
	if (m->due < t->last)
		m->due = t->last; /* the order of the queue */
	t->last = m->due;
	m->ack = fetches || qp_is_unreliable(qp) ? 0 : (uint32_t)latency;
}

/* ------------------------------------------------------- operations */

/* In the child of a fork: the parent completes the WRs in flight. */
static void timing_disown(struct urxe_qp *qp)
{
	struct timing *t = qp->transport_data;

	if (t->pid == urxe_pid)
		return;
	flight_disown(qp);
	t->pid = urxe_pid;
}

/*
 * Retry a WR that was parked. Retries take no time: the timers of the queue
 * continue only while execute() is repeated.
 */
static enum verdict timed_wr_retry(struct urxe_qp *qp, struct run *r,
				   struct timed_wr *m, struct urxe_wqe *w)
{
	const enum verdict v = execute(qp, r, w);

	if (v != WR_RNR && v != WR_SILENT)
		m->stage = STAGE_NONE;
	return v;
}

static enum verdict timing_begin(struct urxe_qp *qp, struct run *r,
				 struct urxe_wqe *w)
{
	struct timing *t = qp->transport_data;
	struct timed_wr *m;

	timing_disown(qp);
	m = timed_wr_at(qp, qp->sq.begun);
	if (m->stage == STAGE_PARKED && m->index == qp->sq.begun)
		return timed_wr_retry(qp, r, m, w);
	m->stage = STAGE_NONE;
	if (wqe_is_local(w)) {
		if (qp->sq.begun == qp->sq.done)
			return execute(qp, r, w);
		m->due = t->last;
		m->ack = 0;
	} else {
		timed_wr_plan(qp, m, w, clock_now());
	}
	m->index = qp->sq.begun;
	m->stage = STAGE_SENT;
	return WR_IN_FLIGHT;
}

/* The order of the queue is that of the steps. */
static bool timing_follows(const struct urxe_qp *qp,
			   const struct urxe_wqe *first,
			   const struct urxe_wqe *second)
{
	(void)qp;
	(void)first;
	(void)second;
	return true;
}

/* Execute @m, which has arrived. False: the queue is parked. */
static bool timed_wr_execute(struct urxe_qp *qp, struct timed_wr *m)
{
	struct urxe_wqe *w = sq_slot(&qp->sq, m->index);
	enum verdict v;
	struct run r;

	run_begin(&r, qp);
	qp_guard_raise(qp, requester_uses(w));
	v = execute(qp, &r, w);
	if (v == WR_RNR || v == WR_SILENT) {
		m->stage = STAGE_PARKED;
		requester_park_flight(qp, &r, m->index, v);
		return false;
	}
	guard_lower(qp->guard);
	if (v == WR_FAILED) {
		m->stage = STAGE_FAILED;
		requester_answer(qp, m->index, r.status);
		return true;
	}
	m->stage = STAGE_ARRIVED;
	m->due += m->ack;
	return true;
}

static uint64_t timing_progress(struct urxe_qp *qp, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	struct timed_wr *m;
	uint32_t i;

	timing_disown(qp);
	for (i = qp->sq.done; (int32_t)(qp->sq.begun - i) > 0; i++) {
		m = timed_wr_at(qp, i);
		if (m->stage < STAGE_FAILED || m->index != i)
			continue;
		if (m->stage == STAGE_SENT && m->due <= now &&
		    !timed_wr_execute(qp, m))
			return next;
		if (m->stage == STAGE_FAILED)
			break; /* those behind it are flushed */
		if (m->stage == STAGE_ARRIVED && m->due <= now) {
			m->stage = STAGE_NONE;
			requester_answer(qp, i, IBV_WC_SUCCESS);
		} else if (m->stage != STAGE_NONE && m->due < next) {
			next = m->due;
		}
		if (m->stage == STAGE_SENT)
			break;
	}
	if (qp->stall.kind == STALL_NONE)
		requester_run(qp);
	return next;
}

static uint64_t timing_due(const struct urxe_qp *qp)
{
	return timed_wr_at(qp, qp->sq.done)->due;
}

static void timing_cancel(struct urxe_qp *qp)
{
	struct timing *t = qp->transport_data;
	uint32_t i;

	for (i = 0; i <= t->mask; i++)
		t->wr[i].stage = STAGE_NONE;
	t->last = 0;
}

static const struct urxe_transport transport = {
	.begin = timing_begin,
	.follows = timing_follows,
	.progress = timing_progress,
	.due = timing_due,
	.cancel = timing_cancel,
};

static bool timing_attach(struct urxe_qp *qp)
{
	const size_t slots = (size_t)qp->sq.mask + 1;
	struct timing *t = calloc(1, sizeof(*t) + slots * sizeof(t->wr[0]));

	if (!t)
		return false;
	t->mask = qp->sq.mask;
	t->pid = urxe_pid;
	urxe_lock(&qp->lock);
	qp->transport_data = t;
	qp->transport = &transport;
	urxe_unlock(&qp->lock);
	return true;
}

/* ------------------------------------------------------- this process */

bool timing_is_on(void)
{
	const char *env = getenv("URXE_TIMING");

	return env && *env && strcmp(env, "0");
}

const char *timing_why(void)
{
	const struct adversary *a = adversary_of_process();
	const char *env = getenv("URXE_TIMING");

	if (!timing_is_on())
		return NULL;
	if (strcmp(env, "1"))
		return "the value must be 0 or 1";
	return a && a->on ? "it cannot be combined with URXE_ADVERSARY" : NULL;
}

void timing_wrap(struct pabi_ops *ops)
{
	attach_wrap(ops, timing_attach);
}
