// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What befalls an object, the port or the process by a rule, and the thread
 * that keeps the time of the rules with ms= and of a port that comes up again.
 *
 * An event comes with the state that it tells of: a QP is in ERR and flushed, a
 * CQ takes no more completions, a dead device makes nothing any more.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "engine/event.h"
#include "engine/flush.h"
#include "engine/log.h"
#include "engine/srq.h"
#include "engine/why.h"
#include "fault.h"

#define CONTEXTS 64 /* of this process that rules with ms= see */
#define NS_PER_MS 1000000ull

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* of CLOCK_MONOTONIC */
/* under the lock: */
static struct urxe_context *contexts[CONTEXTS];
static struct faults *faults;
static uint64_t opened_at; /* the first one; 0: not yet */
static bool done[FAULT_RULES]; /* rules with ms= that struck */
static bool running; /* the thread */
static struct urxe_fabric *down; /* whose port is, because of us; or NULL */
static uint64_t up_at; /* when it comes up again */

static _Atomic bool dead;

bool fault_device_is_dead(void)
{
	return load_relaxed(&dead);
}

/* ------------------------------------------------------- objects */

static void qp_event(struct urxe_qp *qp, enum ibv_event_type type)
{
	urxe_lock_outside(&qp->lock);
	/* it is being destroyed */
	if (URXE_CONN_QPN(load_relaxed(&qp->sh->conn)) != qp->qpn)
		goto out;
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		if (qp_state(qp) == IBV_QPS_ERR)
			break;
		qp_set_error(qp, IBV_QPS_ERR);
		why_broken(qp, REASON_FAULT);
		event_raise(qp->ctx->self, qp->sh, type);
		flush_qp(qp);
		break;
	case IBV_EVENT_DEVICE_FATAL: /* of which the QP does not tell */
		qp_set_error(qp, IBV_QPS_ERR);
		why_broken(qp, REASON_FAULT);
		flush_qp(qp);
		break;
	default:
		event_raise(qp->ctx->self, qp->sh, type);
	}
out:
	urxe_unlock_outside(&qp->lock);
}

static bool qp_suits(const struct urxe_qp *qp, const struct fault_rule *r,
		     uint32_t qpn)
{
	const struct fault_subject s = fault_subject_qp(qp);

	if (qpn)
		return qp->qpn == qpn;
	return r->at != FAULT_AT_MS || fault_fits(r, &s);
}

/* To the QP of that number, or (0) to all that r is about. */
static void qps_event(struct urxe_context *ctx, const struct fault_rule *r,
		      uint32_t qpn, enum ibv_event_type type)
{
	struct urxe_qp *qp;
	uint32_t i;

	pthread_mutex_lock(&ctx->lock);
	for (i = 0; i < URXE_MAX_QP; i++) {
		qp = load_relaxed(&ctx->qp[i]);
		if (!qp || !qp_suits(qp, r, qpn))
			continue;
		qp->pins++; /* it stays, and the lists may change */
		pthread_mutex_unlock(&ctx->lock);
		qp_event(qp, type);
		pthread_mutex_lock(&ctx->lock);
		if (!--qp->pins)
			pthread_cond_broadcast(&ctx->unpinned);
	}
	pthread_mutex_unlock(&ctx->lock);
}

static void srq_event(struct urxe_srq *srq, enum ibv_event_type type)
{
	if (type == IBV_EVENT_SRQ_LIMIT_REACHED)
		store_relaxed(&srq->sh->limit, 0); /* once for each arming */
	event_raise(srq->ctx->self, srq->sh, type);
}

/* To that CQ and SRQ, or (NULL) to all. */
static void cqs_event(struct urxe_context *ctx, struct urxe_cq *only)
{
	struct urxe_cq *cq;

	pthread_mutex_lock(&ctx->lock);
	for (cq = ctx->cqs; cq; cq = cq->next)
		if (!only || cq == only)
			cq_break(&cq->view, "a fault");
	pthread_mutex_unlock(&ctx->lock);
}

static void srqs_event(struct urxe_context *ctx, const struct urxe_srq *only,
		       enum ibv_event_type type)
{
	struct urxe_srq *srq;
	uint32_t i;

	pthread_mutex_lock(&ctx->lock);
	for (i = 0; i < URXE_MAX_SRQ; i++) {
		srq = load_relaxed(&ctx->srq[i]);
		if (srq && (!only || srq == only))
			srq_event(srq, type);
	}
	pthread_mutex_unlock(&ctx->lock);
}

static void context_event(struct urxe_context *ctx, enum ibv_event_type type)
{
	event_send_async(ctx->self, load_acquire(&ctx->arena->async_fifo), 1,
			 type);
}

/* ------------------------------------------------------- the port */

/* With the lock, from here on. */

static void *fault_keep_time(void *arg);

/* False: nobody would look at the time. */
static bool time_is_kept(void)
{
	if (!running)
		running = thread_start(NULL, fault_keep_time, NULL);
	else
		pthread_cond_signal(&changed);
	if (!running)
		urxe_note(
			"a fault: no thread can be made that would keep the time");
	return running;
}

static void port_up(void)
{
	if (down)
		fabric_set_port(down, true);
	down = NULL;
}

static void port_down(struct urxe_context *ctx, uint32_t ms)
{
	const uint64_t until = clock_now() + ms * NS_PER_MS;

	fabric_set_port(ctx->fabric, false);
	if (!ms)
		return;
	if (down != ctx->fabric) { /* another one is not forgotten */
		port_up();
		up_at = 0;
	}
	down = ctx->fabric;
	if (until <= up_at)
		return; /* it is down for longer */
	up_at = until;
	if (!time_is_kept())
		port_up();
}

/* It does not stay down because the program ended meanwhile. */
__attribute__((destructor)) static void fault_port_at_exit(void)
{
	if (pthread_mutex_trylock(&lock))
		return;
	port_up();
	pthread_mutex_unlock(&lock);
	/*
	 * No tail call: ThreadSanitizer ignores what is called from this
	 * library (urxe.tsan), and would see only the unlock, from ld.so.
	 */
	atomic_signal_fence(memory_order_seq_cst);
}

/* ------------------------------------------------------- what it is */

static void fault_sleep(uint32_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000,
			      .tv_nsec = ms % 1000 * (long)NS_PER_MS };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* The device or its port: who has it open several times is told as often. */
static void context_raise(struct urxe_context *ctx, const struct fault_rule *r)
{
	if (r->what == FAULT_DEVICE)
		qps_event(ctx, r, 0, r->value);
	context_event(ctx, r->value);
}

/* With the lock: contexts stay.  A child may have its parent's, which is not in
 * the list. */
static void contexts_raise(struct urxe_context *ctx, const struct fault_rule *r)
{
	bool listed = false;
	unsigned int i;

	if (r->what == FAULT_DEVICE)
		store_relaxed(&dead, true);
	for (i = 0; i < CONTEXTS; i++) {
		if (contexts[i])
			context_raise(contexts[i], r);
		listed |= contexts[i] == ctx;
	}
	if (!listed)
		context_raise(ctx, r);
}

static void fault_raise(const struct fault_rule *r,
			const struct fault_place *at)
{
	switch (r->what) {
	case FAULT_QP:
		qps_event(at->ctx, r, at->qpn, r->value);
		break;
	case FAULT_CQ:
		cqs_event(at->ctx, at->cq);
		break;
	case FAULT_SRQ:
		srqs_event(at->ctx, at->srq, r->value);
		break;
	default:
		contexts_raise(at->ctx, r);
	}
}

/* Is it about all contexts of the process, or its port? */
static bool rule_is_wide(const struct fault_rule *r)
{
	return r->what == FAULT_PORT || r->what == FAULT_DEVICE;
}

/* What is wide: with the lock; the rest with it or without. */
static void rule_strike(const struct fault_rule *r,
			const struct fault_place *at)
{
	urxe_note("a fault: the rule \"%s\" strikes", r->text);
	switch (r->effect) {
	case FAULT_EVENT:
		fault_raise(r, at);
		break;
	case FAULT_DOWN:
		port_down(at->ctx, r->value);
		break;
	case FAULT_UP:
		if (down == at->ctx->fabric)
			down = NULL;
		fabric_set_port(at->ctx->fabric, true);
		break;
	case FAULT_KILL:
		kill(getpid(), SIGKILL);
		break;
	case FAULT_STOP:
		kill(getpid(), SIGSTOP);
		break;
	case FAULT_SLEEP:
		fault_sleep(r->value);
		break;
	default:
		break;
	}
}

void fault_strike(const struct fault_rule *r, const struct fault_place *at)
{
	if (rule_is_wide(r))
		pthread_mutex_lock(&lock);
	rule_strike(r, at);
	if (rule_is_wide(r))
		pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------- time */

/* When rule i is to strike, UINT64_MAX: never (again).  The lock is held. */
static uint64_t rule_at(unsigned int i)
{
	const struct fault_rule *r = &faults->rule[i];

	return r->what < FAULT_QP || r->at != FAULT_AT_MS || done[i] ?
		       UINT64_MAX :
		       opened_at + r->ms * NS_PER_MS;
}

/* For objects once in each context; the lock is held, so they stay. */
static void rule_strike_all(const struct fault_rule *r)
{
	struct fault_place at = { 0 };
	unsigned int i;

	for (i = 0; i < CONTEXTS; i++) {
		if (!contexts[i])
			continue;
		if (!at.ctx)
			fault_struck(faults, r);
		at.ctx = contexts[i];
		rule_strike(r, &at);
		if (r->effect != FAULT_EVENT || rule_is_wide(r))
			return;
	}
}

static void fault_wait(uint64_t until)
{
	struct timespec t = { .tv_sec = until / 1000000000,
			      .tv_nsec = (long)(until % 1000000000) };

	if (until == UINT64_MAX)
		pthread_cond_wait(&changed, &lock);
	else
		pthread_cond_timedwait(&changed, &lock, &t);
}

/* The one that is to strike first. */
static unsigned int rule_first(void)
{
	unsigned int i, first = 0;

	for (i = 1; i < faults->n; i++)
		if (rule_at(i) < rule_at(first))
			first = i;
	return first;
}

/* What is due, the earliest first; returns when the next is. */
static uint64_t fault_tick(uint64_t now)
{
	unsigned int i;

	for (;;) {
		i = rule_first();
		if (down && up_at <= rule_at(i)) {
			if (up_at > now)
				return up_at;
			port_up();
		} else {
			if (rule_at(i) > now)
				return rule_at(i);
			done[i] = true;
			rule_strike_all(&faults->rule[i]);
		}
	}
}

static void *fault_keep_time(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;)
		fault_wait(fault_tick(clock_now()));
	return NULL;
}

static void changed_init(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attr);
	pthread_condattr_destroy(&attr);
}

/*
 * The child has no such thread, its parent sees to the port, and what it got of
 * its parent's contexts is not its own: it begins with the first that it opens.
 */
static void fault_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	changed_init();
	memset(contexts, 0, sizeof(contexts));
	memset(done, 0, sizeof(done));
	opened_at = 0;
	running = false;
	down = NULL;
	store_relaxed(&dead, false);
}

/* Once, and not in a child again. */
static void fault_begin(struct faults *f)
{
	changed_init();
	pthread_atfork(NULL, NULL, fault_after_fork);
	faults = f;
}

void fault_opened(struct faults *f, struct urxe_context *ctx)
{
	unsigned int i;

	pthread_mutex_lock(&lock);
	if (!faults)
		fault_begin(f);
	if (!opened_at)
		opened_at = clock_now();
	for (i = 0; i < CONTEXTS; i++) {
		if (contexts[i])
			continue;
		contexts[i] = ctx;
		break;
	}
	for (i = 0; i < f->n; i++)
		if (rule_at(i) != UINT64_MAX) {
			time_is_kept();
			break;
		}
	pthread_mutex_unlock(&lock);
}

void fault_closing(struct urxe_context *ctx)
{
	unsigned int i, others = 0;

	pthread_mutex_lock(&lock);
	for (i = 0; i < CONTEXTS; i++)
		others += contexts[i] && contexts[i] != ctx &&
			  contexts[i]->fabric == down;
	if (ctx->fabric == down && !others)
		port_up();
	for (i = 0; i < CONTEXTS; i++)
		if (contexts[i] == ctx)
			contexts[i] = NULL;
	pthread_mutex_unlock(&lock);
}
