// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A transport that does at random all that a transport may do: it takes,
 * completes, parks and fails WRs, and delivers responses in any order, in the
 * poller and in the service thread.  URXE_TEST_SEED repeats a run, except for
 * the scheduling of threads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine.h"
#include "engine/qp/flight.h"
#include "engine/exec/requester.h"

#define MOST_WRS 100000u
#define WRS ((unsigned int)turns_of(MOST_WRS))

static uint64_t seed;
#define sure(cond)                                     \
	ck_assert_msg(cond, "URXE_TEST_SEED=%llu: %s", \
		      (unsigned long long)seed, #cond)

/* Return a number below @n (xorshift64).  *@state must not be 0. */
static uint32_t rnd(uint64_t *state, uint32_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 20) % n;
}

/*
 * The transport's WRs in flight, and its state.  Protected by the QP's lock.
 */
static struct {
	uint64_t state;
	uint32_t flight[ENGINE_DEPTH];
	unsigned int n;
	uint64_t next; /* wr_id of the next WR to begin */
	/* the QP breaks when the WRs before the failed one are done */
	bool failed;
	bool quiet; /* no errors, no parking */
} transport;
/* enum ibv_wc_status + 1: as returned by the transport, and as observed */
static uint8_t said[MOST_WRS + 1], observed[MOST_WRS + 1];
static uint8_t completed_times[MOST_WRS + 1];
static uint8_t opcode_of[MOST_WRS + 1]; /* index in opcodes[] */

static bool follows(const struct urxe_qp *qp, const struct urxe_wqe *first,
		    const struct urxe_wqe *second)
{
	(void)qp;
	return !((first->wr_id ^ second->wr_id) & 3);
}

static void check_order(struct urxe_qp *qp, const struct urxe_wqe *w)
{
	const struct urxe_wqe *first;
	unsigned int i;

	for (i = 0; i < transport.n; i++) {
		first = sq_slot(&qp->sq, transport.flight[i]);
		sure(follows(qp, first, w) ||
		     !must_wait(opcode_of[first->wr_id], opcode_of[w->wr_id],
				w->flags & IBV_SEND_FENCE));
	}
}

static enum verdict begin(struct urxe_qp *qp, struct run *r, struct urxe_wqe *w)
{
	uint32_t dice = rnd(&transport.state, 1000);

	sure(w->wr_id == transport.next && !transport.failed);
	check_order(qp, w);
	if (dice < 100 && !transport.quiet)
		return dice & 1 ? WR_RNR : WR_SILENT;
	transport.next++;
	if (dice == 100 && !transport.quiet) {
		r->status = IBV_WC_LOC_PROT_ERR;
		transport.failed = true;
		said[w->wr_id] = r->status + 1;
		return WR_FAILED;
	}
	if (dice < 250) {
		said[w->wr_id] = IBV_WC_SUCCESS + 1;
		return WR_DONE;
	}
	transport.flight[transport.n++] = qp->sq.begun;
	return WR_IN_FLIGHT;
}

static uint64_t progress(struct urxe_qp *qp, uint64_t now)
{
	uint32_t i, index, times = rnd(&transport.state, 4);
	enum ibv_wc_status status;

	for (; times && transport.n; times--) {
		i = rnd(&transport.state, transport.n);
		index = transport.flight[i];
		transport.flight[i] = transport.flight[--transport.n];
		status = transport.quiet || rnd(&transport.state, 2000) ?
				 IBV_WC_SUCCESS :
				 IBV_WC_REM_OP_ERR;
		transport.failed |= status != IBV_WC_SUCCESS;
		said[sq_slot(&qp->sq, index)->wr_id] = status + 1;
		requester_answer(qp, index, status);
		if (rnd(&transport.state, 2))
			requester_run(qp);
	}
	requester_run(qp);
	return now + 50000;
}

static void cancel(struct urxe_qp *qp)
{
	(void)qp;
	transport.n = 0;
}

static const struct urxe_transport random_transport = {
	.begin = begin,
	.follows = follows,
	.progress = progress,
	.cancel = cancel,
};

static void saw_request(enum observe_point point, const struct urxe_qp *qp,
			const struct urxe_wqe *w, uint32_t what)
{
	(void)qp;
	if (point != OBSERVE_ANSWERED)
		return;
	sure(!observed[w->wr_id]);
	observed[w->wr_id] = what + 1;
	if (said[w->wr_id])
		sure(said[w->wr_id] == what + 1);
	else /* parked, no retries left */
		sure(what == IBV_WC_RETRY_EXC_ERR ||
		     what == IBV_WC_RNR_RETRY_EXC_ERR);
}

static void saw_completion(const struct urxe_cqe *e)
{
	sure(!completed_times[e->wr_id]++);
}

static struct urxe_observer observer = {
	.request = saw_request,
	.completes = saw_completion,
};

/* ------------------------------------------------------- the program */

static struct {
	uint64_t state;
	uint64_t posted, polled; /* WRs; those below polled are done */
	bool signaled[MOST_WRS + 1];
	unsigned int errors, resets, drains;
} program;

/*
 * A result that the transport returned was observed, whatever became of the
 * WR.
 */
static void check_answered(uint64_t id)
{
	sure(observed[id] || !said[id]);
}

static void restart(struct engine *e)
{
	engine_qp_set(e->qp, IBV_QPS_RESET);
	expect_none(e->cq);
	sure(!transport.n && !atomic_load(&e->cq->stalled));
	for (; program.polled < program.posted; program.polled++)
		check_answered(program.polled);
	transport.next = program.posted;
	transport.failed = false;
	engine_qp_connect(e->qp, e->qp->qpn);
	e->qp->attr.timeout = 8;
	e->qp->attr.retry_cnt = 7;
}

/* Completions are in order, and none is missing. */
static void check_wc(const struct ibv_wc *wc, bool *failed)
{
	const bool flushed = wc->status == IBV_WC_WR_FLUSH_ERR;

	sure(wc->wr_id >= program.polled && wc->wr_id < program.posted);
	for (; program.polled < wc->wr_id; program.polled++)
		sure(!*failed && !program.signaled[program.polled] &&
		     observed[program.polled] == IBV_WC_SUCCESS + 1);
	program.polled++;
	sure(completed_times[wc->wr_id] == 1);
	check_answered(wc->wr_id);
	sure(flushed || observed[wc->wr_id] == wc->status + 1);
	if (*failed)
		sure(flushed);
	else if (wc->status == IBV_WC_SUCCESS)
		sure(program.signaled[wc->wr_id]);
	else
		sure(!flushed);
	*failed = wc->status != IBV_WC_SUCCESS;
}

/* Return false if the QP broke and was restarted. */
static bool poll_some(struct engine *e)
{
	bool failed = false;
	struct ibv_wc wc;

	while (poll_cq(e->cq, 1, &wc) == 1)
		check_wc(&wc, &failed);
	if (!failed)
		return true;
	while (program.polled < program.posted) {
		wc = next_wc(e->cq);
		check_wc(&wc, &failed);
	}
	program.errors++;
	restart(e);
	return false;
}

/* Modify the QP to SQD, and back to RTS when it is drained. */
static void drain(struct engine *e)
{
	uint64_t end = clock_now() + 10000000000ull;
	bool done = false;

	urxe_lock(&e->qp->lock);
	e->qp->sqd_notify = true;
	urxe_unlock(&e->qp->lock);
	engine_qp_set(e->qp, IBV_QPS_SQD);
	while (!done) {
		if (!poll_some(e))
			return; /* the reset also discarded the event */
		urxe_lock(&e->qp->lock);
		done = !e->qp->sqd_notify || qp_state(e->qp) != IBV_QPS_SQD;
		sure(e->qp->sqd_notify || !transport.n);
		urxe_unlock(&e->qp->lock);
		sure(clock_now() < end);
	}
	if (!poll_some(e))
		return;
	program.drains++;
	engine_qp_set(e->qp, IBV_QPS_RTS);
}

static int post_one(struct engine *e, bool signaled)
{
	const uint64_t id = program.posted;
	unsigned int flags = rnd(&program.state, 4) ? 0 : IBV_SEND_FENCE;
	int ret;

	program.signaled[id] = signaled;
	opcode_of[id] = rnd(&program.state, OPCODES);
	/* more READs and atomics, which may pass one another */
	if (rnd(&program.state, 2))
		opcode_of[id] = 7 + rnd(&program.state, 3);
	ret = post_bare(e->qp, opcodes[opcode_of[id]], id,
			flags | (signaled ? IBV_SEND_SIGNALED : 0));
	sure(!ret || ret == ENOMEM);
	program.posted += !ret;
	return ret;
}

START_TEST(stress)
{
	const char *env = getenv("URXE_TEST_SEED");
	struct engine *e = engine_new();

	seed = (env ? strtoull(env, NULL, 0) : clock_now()) | 1;
	transport.state = program.state = seed;
	observer_add(&observer);
	e->qp->transport = &random_transport;
	restart(e);
	while (program.posted < WRS - 1) {
		post_one(e, program.posted % 8 == 0 || rnd(&program.state, 2));
		if (!rnd(&program.state, 2))
			poll_some(e);
		if (!rnd(&program.state, 2000)) {
			poll_some(e);
			program.resets++;
			restart(e);
		}
		if (!rnd(&program.state, 500))
			drain(e);
	}
	urxe_lock(&e->qp->lock);
	transport.quiet = true;
	urxe_unlock(&e->qp->lock);
	while (post_one(e, true))
		poll_some(e);
	while (program.polled < program.posted)
		poll_some(e);
	wait_until(!atomic_load(&e->cq->stalled));
	sure(program.errors && program.resets && program.drains);
	engine_free(e);
	urxe_observers = NULL;
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine, a transport at random");

	add(s, stress);
	return run_suite(s);
}
