// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Checks of completions and events that the program did not take. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/patience.h"
#include "base/plural.h"
#include "engine/core/log.h"
#include "engine/poll/poller.h"
#include "referee.h"
#include "shared/call.h"
#include "shared/event_tag.h"
#include "unpolled.h"
#include "verbs/context.h"
#include "verbs/cq.h"
#include "verbs/qp.h"

/* How long to wait for another thread to acknowledge events. */
#define TIMEOUT_MS 3000
#define STEP_MS 10

/* ------------------------------------------------------- completions */

/* Completions of a QP that are left in its CQs. */
struct left {
	uint32_t errors, others;
	uint64_t wr_id; /* of the first error */
	uint8_t status;
};

/*
 * Count the completions of the QP in the CQ.  Flushed WRs are not counted:
 * they are expected when a QP is destroyed.  If another thread polls the CQ
 * now, nothing is counted.
 */
static void left_count(struct urxe_cq *cq, uint32_t qpn, struct left *l)
{
	const struct urxe_cqe *e;
	uint32_t i;

	if (!gate_trylock(&cq->gate))
		return;
	for (i = 0; (e = cq_peek(cq, i)); i++) {
		if (e->qpn != qpn || e->status == IBV_WC_WR_FLUSH_ERR)
			continue;
		if (e->status == IBV_WC_SUCCESS) {
			l->others++;
		} else if (!l->errors++) {
			l->wr_id = e->wr_id;
			l->status = e->status;
		}
	}
	gate_unlock(&cq->gate);
}

void unpolled_check(const struct shadow_qp *q, bool errors_only)
{
	struct left l = { 0 };
	char name[FINDING_NAME];
	struct finding f = { .at = &q->s.made, .at_is = "created" };

	if (q->s.inherited || q->opened)
		return;
	f.object = shadow_name(&q->s, name);
	if (q->scq)
		left_count(to_ucq(q->scq->cq), q->s.number, &l);
	if (q->rcq && q->rcq != q->scq)
		left_count(to_ucq(q->rcq->cq), q->s.number, &l);
	f.rule = RULE_error_unpolled;
	if (l.errors)
		finding_report(
			&f,
			"wr_id 0x%llx failed (%s), and its completion was never polled",
			(unsigned long long)l.wr_id,
			reason_status_name(l.status));
	f.rule = RULE_completion_unpolled;
	if (l.others && !errors_only)
		finding_report(&f, "%u completion%s never polled", l.others,
			       plural_was(l.others));
}

/* ------------------------------------------------------- events */

/*
 * Return a count of acknowledged events.  libibverbs keeps it in the object,
 * guarded by the object's mutex (man ibv_get_cq_event, ibv_get_async_event).
 */
static uint32_t acked(pthread_mutex_t *mutex, const uint32_t *count)
{
	uint32_t n;

	pthread_mutex_lock(mutex);
	n = *count;
	pthread_mutex_unlock(mutex);
	return n;
}

/*
 * Return the number of delivered events that are not acknowledged; negative
 * if more were acknowledged than delivered.
 */
static int32_t unacked(const struct shadow *s)
{
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	switch (s->type) {
	case SHADOW_CQ:
		cq = (void *)s->handle;
		return (int32_t)(s->events + s->async_events -
				 acked(&cq->mutex, &cq->comp_events_completed) -
				 acked(&cq->mutex,
				       &cq->async_events_completed));
	case SHADOW_QP:
		qp = (void *)s->handle;
		return (int32_t)(s->async_events -
				 acked(&qp->mutex, &qp->events_completed));
	case SHADOW_SRQ:
		srq = (void *)s->handle;
		return (int32_t)(s->async_events -
				 acked(&srq->mutex, &srq->events_completed));
	default:
		return 0;
	}
}

/*
 * If another CQ has the opposite imbalance of that of CQ s (n), format a hint
 * that the program acknowledged the wrong CQ.  Otherwise return "".
 */
static const char *acked_wrong_cq(const struct shadow *s, int32_t n,
				  char text[160])
{
	char name[FINDING_NAME];
	const struct shadow *o;
	int32_t other, count;

	text[0] = 0;
	for (o = shadow_first(); o && s->type == SHADOW_CQ; o = o->next) {
		if (o == s || o->type != SHADOW_CQ || o->inherited)
			continue;
		other = unacked(o);
		if (!other || (other < 0) == (n < 0))
			continue;
		count = other < 0 ? -other : other;
		snprintf(
			text, 160,
			"; %s has %d acknowledgement%s too %s: the wrong CQ may have been acknowledged",
			shadow_name(o, name), count, plural(count),
			other < 0 ? "many" : "few");
		break;
	}
	return text;
}

/* Report that -n events more were acknowledged than delivered. */
static void unacked_beyond(const struct finding *f, const struct shadow *s,
			   int32_t n)
{
	char text[160];

	finding_report(f, "%d more event%s acknowledged than delivered%s", -n,
		       plural_was(-n), acked_wrong_cq(s, n, text));
}

void unacked_check(const struct shadow *s, bool at_exit)
{
	char name[FINDING_NAME], text[160];
	struct finding f = { .rule = RULE_event_unacked,
			     .at = &s->made,
			     .at_is = "created" };
	int32_t n = s->inherited ? 0 : unacked(s);

	f.object = shadow_name(s, name);
	f.at_exit = at_exit && n > 0;
	if (n > 0)
		finding_report(&f, "%d event%s never acknowledged%s", n,
			       plural_was(n), acked_wrong_cq(s, n, text));
	else if (n < 0)
		unacked_beyond(&f, s, n);
}

/*
 * Wait at most TIMEOUT_MS for other threads to acknowledge, and return the
 * count of unacknowledged events.  Cancellation is disabled meanwhile.
 */
static int32_t unacked_after(int32_t (*count)(const void *of), const void *of)
{
	const struct timespec step = { .tv_nsec = STEP_MS * 1000000 };
	struct patience patience = patience_begin(TIMEOUT_MS * 1000000ull);
	int cancel, saved = errno;
	int32_t n;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while ((n = count(of)) > 0 && !patience_ended(&patience))
		nanosleep(&step, NULL);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return n;
}

static int32_t unacked_of_shadow(const void *s)
{
	return unacked(s);
}

/*
 * List the destroy verb in the call table, for urxe why, as long as it waits
 * here.  NULL: it does not wait.
 */
static struct urxe_call *unacked_call(const struct shadow *s)
{
	const int32_t n = unacked(s);
	enum urxe_call_kind kind = s->type == SHADOW_CQ ? URXE_CALL_DESTROY_CQ :
				   s->type == SHADOW_QP ? URXE_CALL_DESTROY_QP :
							  URXE_CALL_DESTROY_SRQ;
	const struct urxe_context *ctx = to_uctx(s->context);

	return n > 0 ? call_begin(ctx->fabric, kind, ctx->slot, s->number,
				  (uint32_t)n) :
		       NULL;
}

/* Does another object use it?  Then the destroy verb returns EBUSY. */
static bool is_used_by(const struct shadow *s, const struct shadow *user)
{
	const void *used = s; /* the first member of each shadow */
	const struct shadow_qp *qp;

	if (user->type == SHADOW_SRQ)
		return to_shadow_srq(user)->cq == used;
	if (user->type != SHADOW_QP)
		return false;
	qp = to_shadow_qp(user);
	return qp->scq == used || qp->rcq == used || qp->srq == used;
}

static bool is_used(const struct shadow *s)
{
	const struct shadow *user;

	if (s->type == SHADOW_QP)
		return load_relaxed(&to_vqp(to_shadow_qp(s)->qp)->mcast_groups);
	referee_lock();
	for (user = shadow_first(); user && !is_used_by(s, user);)
		user = user->next;
	referee_unlock();
	return user;
}

void unacked_wait(struct shadow *s)
{
	struct urxe_call *call;
	int32_t n;
	char name[FINDING_NAME], text[160];
	struct finding f = { .rule = RULE_destroy_stuck,
			     .at = &s->made,
			     .at_is = "created",
			     .here = true };

	if (unacked(s) > 0 && is_used(s))
		return;
	call = unacked_call(s);
	n = unacked_after(unacked_of_shadow, s);
	call_end(call);
	if (!n)
		return;
	referee_lock();
	f.object = shadow_name(s, name);
	if (n > 0) {
		finding_report(
			&f,
			"the destroy verb waits forever for the acknowledgement of %d event%s%s",
			n, plural(n), acked_wrong_cq(s, n, text));
	} else {
		f.rule = RULE_event_unacked;
		unacked_beyond(&f, s, n);
	}
	referee_unlock();
}

/* ------------------------------------------------------- librdmacm */

/* An rdma_cm_id, and the preload library's function that counts. */
struct cm_waits {
	const void *id;
	uint32_t (*unacked)(const void *id, uint32_t *event);
};

static int32_t unacked_of_id(const void *arg)
{
	const struct cm_waits *w = arg;
	uint32_t event;

	return (int32_t)w->unacked(w->id, &event);
}

/*
 * Called by the preload library before a call of librdmacm that waits until
 * the events of @id are acknowledged.
 */
static void unacked_wait_cm(const char *call, const void *id,
			    uint32_t (*count)(const void *, uint32_t *))
{
	const struct cm_waits w = { id, count };
	const struct finding f = { .rule = RULE_destroy_stuck,
				   .object = call,
				   .here = true };
	uint32_t event = 0, n;

	if (unacked_after(unacked_of_id, &w) <= 0)
		return;
	n = count(id, &event);
	referee_lock();
	finding_report(
		&f,
		"waits forever for the acknowledgement of %u event%s of its rdma_cm_id; the last one is RDMA_CM_EVENT_%s",
		n, plural(n), reason_cm_event_name(event));
	referee_unlock();
}

void unacked_watch_cm(void)
{
	void (*watch)(urxe_cm_waits *);

	*(void **)&watch = dlsym(RTLD_DEFAULT, "urxe_watch_cm");
	if (watch)
		watch(unacked_wait_cm);
}

/* ------------------------------------------- events that were delivered */

/* libibverbs delivers a completion event of @cq to the program: count it. */
static void referee_cq_event(struct ibv_cq *cq)
{
	struct shadow_cq *c;

	referee_lock();
	c = shadow_cq(cq);
	if (c)
		c->s.events++;
	referee_unlock();
	referee_next.cq_event(cq);
}

/* Return the shadow of the object whose acknowledgement counts, or NULL. */
static struct shadow *event_object(const struct ibv_async_event *e)
{
	switch (event_async_kind(e->event_type)) {
	case EVENT_CQ:
		return shadow_find(SHADOW_CQ, e->element.cq);
	case EVENT_QP:
		return shadow_find(SHADOW_QP, e->element.qp);
	case EVENT_SRQ:
		return shadow_find(SHADOW_SRQ, e->element.srq);
	default:
		return NULL;
	}
}

static void referee_async_event(struct ibv_context *ctx,
				struct ibv_async_event *e)
{
	struct shadow *s;

	referee_next.async_event(ctx, e);
	referee_lock();
	s = event_object(e);
	if (s)
		s->async_events++;
	referee_unlock();
}

void referee_wrap_events(struct pabi_ops *ops)
{
	ops->async_event = referee_async_event;
	ops->cq_event = referee_cq_event;
}
