// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Effects of fault rules on objects, contexts and the process; and the thread
 * that serves rules with ms= and sets links up again after DOWN=ms.
 *
 * An event is raised together with the state that it announces: the QP is in
 * ERR and flushed, the CQ takes no more completions, after DEVICE_FATAL verbs
 * fail with EIO.
 *
 * `lock` protects the list of contexts, the timer state and fault_link.c. It is
 * taken before ctx->lock and qp->lock.
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
#include "engine/cq/event.h"
#include "engine/qp/flush.h"
#include "engine/core/log.h"
#include "engine/qp/srq.h"
#include "engine/qp/why.h"
#include "fault.h"
#include "fault_link.h"

#define CONTEXTS 64 /* contexts that the list has room for */
#define NS_PER_MS 1000000ull

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* waits use CLOCK_MONOTONIC */
	/* protected by lock: */
	struct urxe_context *contexts[CONTEXTS];
	struct faults *faults;
	uint64_t opened_at; /* time of the first open; 0: none yet */
	bool running; /* fault_keep_time() has a thread */
	/* not protected: */
	_Atomic bool dead;
} timed = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool fault_device_is_dead(void)
{
	return load_relaxed(&timed.dead);
}

/* ------------------------------------------------------- objects */

static void qp_event(struct urxe_qp *qp, enum ibv_event_type type)
{
	urxe_lock_outside(&qp->lock);
	/* the QP is being destroyed */
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
	case IBV_EVENT_DEVICE_FATAL: /* the context gets the event */
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
	return r->at != FAULT_AT_MS || fault_rule_matches(r, &s);
}

/*
 * Raise @type on the QP @qpn of @ctx; if @qpn is 0, on all QPs that match @r.
 */
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
		qp->pins++; /* @qp is not unlinked while it is pinned */
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
		store_relaxed(&srq->sh->limit, 0); /* disarmed by the event */
	event_raise(srq->ctx->self, srq->sh, type);
}

/* Break the CQ @only as after an overrun; if it is NULL, all CQs of @ctx. */
static void cqs_event(struct urxe_context *ctx, struct urxe_cq *only)
{
	struct urxe_cq *cq;

	pthread_mutex_lock(&ctx->lock);
	for (cq = ctx->cqs; cq; cq = cq->next)
		if (!only || cq == only)
			cq_break(&cq->view, "injected fault");
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

/* ------------------------------------------------------- time */

static void *fault_keep_time(void *arg);

/*
 * Start the timer thread, or have it compute its next deadline anew. Return
 * false if no thread can be created.
 */
static bool time_is_kept(void)
{
	if (!timed.running)
		timed.running = thread_start(NULL, fault_keep_time, NULL);
	else
		pthread_cond_signal(&timed.changed);
	if (!timed.running)
		urxe_note(
			"fault injection: no timer thread: ms= and DOWN=MS have no effect");
	return timed.running;
}

/*
 * Set the links up at exit, so that a program that ends before the time of
 * DOWN=ms has passed does not leave them down. If another thread holds `lock`,
 * they stay as they are.
 */
__attribute__((destructor)) static void fault_port_at_exit(void)
{
	if (pthread_mutex_trylock(&timed.lock))
		return;
	fault_links_up();
	pthread_mutex_unlock(&timed.lock);
	/*
	 * Prevent a tail call: ThreadSanitizer ignores calls from this
	 * library (urxe.tsan), and would see only the unlock, as called from
	 * ld.so.
	 */
	atomic_signal_fence(memory_order_seq_cst);
}

/* ------------------------------------------------------- effects */

static void fault_sleep(uint32_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000,
			      .tv_nsec = ms % 1000 * (long)NS_PER_MS };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/*
 * Raise an event of the device or its port in @ctx. A process that has opened
 * the device several times gets one in each context.
 */
static void context_raise(struct urxe_context *ctx, const struct fault_rule *r)
{
	if (r->what == FAULT_DEVICE)
		qps_event(ctx, r, 0, r->value);
	context_event(ctx, r->value);
}

/*
 * Raise the event of @r in all contexts of the process. The caller holds
 * `lock`, so that the contexts stay. After a fork @ctx may be a context of
 * the parent, which is not in the list.
 */
static void contexts_raise(struct urxe_context *ctx, const struct fault_rule *r)
{
	bool listed = false;
	unsigned int i;

	if (r->what == FAULT_DEVICE)
		store_relaxed(&timed.dead, true);
	for (i = 0; i < CONTEXTS; i++) {
		if (timed.contexts[i])
			context_raise(timed.contexts[i], r);
		listed |= timed.contexts[i] == ctx;
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

/* Return whether @r affects all contexts of the process or a link. */
static bool rule_is_wide(const struct fault_rule *r)
{
	return r->what == FAULT_PORT || r->what == FAULT_DEVICE;
}

/*
 * Carry out the effect of @r. The caller holds `lock` if rule_is_wide(@r);
 * otherwise it may hold it or not.
 */
static void rule_strike(const struct fault_rule *r,
			const struct fault_place *at)
{
	urxe_note("injected fault: rule \"%s\"", r->text);
	switch (r->effect) {
	case FAULT_EVENT:
		fault_raise(r, at);
		break;
	case FAULT_DOWN:
		if (fault_link_down(r, at->ctx) && !time_is_kept())
			fault_links_up();
		break;
	case FAULT_UP:
		fault_link_up(r, at->ctx);
		break;
	case FAULT_RATE:
		fault_link_rate(r, at->ctx);
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
		pthread_mutex_lock(&timed.lock);
	rule_strike(r, at);
	if (rule_is_wide(r))
		pthread_mutex_unlock(&timed.lock);
}

/* ------------------------------------------------------- rules with ms= */

/*
 * Return the time of the next turn of rule @i, or UINT64_MAX if it has none.
 * The caller holds `lock`.
 */
static uint64_t rule_at(unsigned int i)
{
	const struct fault_rule *r = &timed.faults->rule[i];

	return r->what < FAULT_QP || r->at != FAULT_AT_MS ||
			       !fault_rule_has_turn(r) ?
		       UINT64_MAX :
		       timed.opened_at +
			       (load_relaxed(&r->seen) + 1) * r->ms * NS_PER_MS;
}

/* Does @r apply to @ctx? Its qp= and type= are for QPs (qps_event()). */
static bool rule_has_context(const struct fault_rule *r,
			     const struct urxe_context *ctx)
{
	struct fault_subject s = fault_subject_ctx(ctx);

	s.qpn = r->qpn;
	s.type = r->types;
	return fault_rule_matches(r, &s);
}

/*
 * Take the turn of a rule with ms=. If it strikes: events of objects in each
 * context of the process, other effects once. The caller holds `lock`, so that
 * the contexts stay.
 */
static void rule_take_turn(struct fault_rule *r)
{
	struct fault_place at = { 0 };
	bool has[CONTEXTS], any = false;
	unsigned int i;

	for (i = 0; i < CONTEXTS; i++) {
		has[i] = timed.contexts[i] &&
			 rule_has_context(r, timed.contexts[i]);
		any |= has[i];
	}
	if (!fault_turn_strikes(timed.faults, r, any))
		return;
	for (i = 0; i < CONTEXTS; i++) {
		if (!has[i])
			continue;
		at.ctx = timed.contexts[i];
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
		pthread_cond_wait(&timed.changed, &timed.lock);
	else
		pthread_cond_timedwait(&timed.changed, &timed.lock, &t);
}

/* Return the rule that has the next turn. */
static unsigned int rule_first(void)
{
	unsigned int i, first = 0;

	for (i = 1; i < timed.faults->n; i++)
		if (rule_at(i) < rule_at(first))
			first = i;
	return first;
}

/*
 * Carry out what is due, in the order of time: rules, and the end of DOWN=ms.
 * Return the time of the next one, UINT64_MAX if there is none. The caller
 * holds `lock`.
 */
static uint64_t fault_tick(uint64_t now)
{
	uint64_t next;
	unsigned int i;

	for (;;) {
		i = rule_first();
		next = fault_links_next();
		if (next > rule_at(i))
			next = rule_at(i);
		if (next > now || next == UINT64_MAX)
			return next;
		if (next == fault_links_next())
			fault_links_advance();
		else
			rule_take_turn(&timed.faults->rule[i]);
	}
}

/*
 * Can all contexts have asynchronous events?  libibverbs creates the queue
 * after it has opened the context.  The caller holds `lock`.
 */
static bool contexts_have_queues(void)
{
	unsigned int i;

	for (i = 0; i < CONTEXTS; i++)
		if (timed.contexts[i] &&
		    !load_acquire(&timed.contexts[i]->arena->async_fifo))
			return false;
	return true;
}

static void *fault_keep_time(void *arg)
{
	uint64_t now;

	(void)arg;
	pthread_mutex_lock(&timed.lock);
	for (;;) {
		now = clock_now();
		fault_wait(contexts_have_queues() ? fault_tick(now) :
						    now + NS_PER_MS);
	}
	return NULL;
}

static void changed_init(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&timed.changed, &attr);
	pthread_condattr_destroy(&attr);
}

/*
 * Reset the state in the child of a fork. The child has no timer thread, the
 * parent sets its links up, and the contexts that the child has inherited
 * belong to the parent. The child starts anew with the first context that it
 * opens.
 */
static void fault_after_fork(void)
{
	pthread_mutex_init(&timed.lock, NULL);
	changed_init();
	memset(timed.contexts, 0, sizeof(timed.contexts));
	timed.opened_at = 0;
	timed.running = false;
	fault_links_forget();
	store_relaxed(&timed.dead, false);
}

/*
 * Called once in a process, by the first fault_opened(); the child of a fork
 * inherits the result.
 */
static void fault_begin(struct faults *f)
{
	changed_init();
	fault_links_forget();
	pthread_atfork(NULL, NULL, fault_after_fork);
	timed.faults = f;
}

void fault_opened(struct faults *f, struct urxe_context *ctx)
{
	unsigned int i;

	pthread_mutex_lock(&timed.lock);
	if (!timed.faults)
		fault_begin(f);
	if (!timed.opened_at)
		timed.opened_at = clock_now();
	for (i = 0; i < CONTEXTS; i++) {
		if (timed.contexts[i])
			continue;
		timed.contexts[i] = ctx;
		break;
	}
	for (i = 0; i < f->n; i++)
		if (rule_at(i) != UINT64_MAX) {
			time_is_kept();
			break;
		}
	pthread_mutex_unlock(&timed.lock);
}

void fault_closing(struct urxe_context *ctx)
{
	unsigned int i, others = 0;

	pthread_mutex_lock(&timed.lock);
	for (i = 0; i < CONTEXTS; i++)
		others += timed.contexts[i] && timed.contexts[i] != ctx &&
			  timed.contexts[i]->fabric == ctx->fabric;
	if (!others)
		fault_links_leave(ctx->fabric);
	for (i = 0; i < CONTEXTS; i++)
		if (timed.contexts[i] == ctx)
			timed.contexts[i] = NULL;
	pthread_mutex_unlock(&timed.lock);
}
