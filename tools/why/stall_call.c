// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Blocked calls of libibverbs and librdmacm (shared/call.h), and recently
 * failed WRs, as waits (stall.h).
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/plural.h"
#include "fabric/reason.h"
#include "stall.h"

/*
 * Get the process of the call. Return false if the process or the thread is
 * gone.
 */
static bool call_process(const struct view *v, const struct urxe_call *c,
			 struct view_process *p)
{
	char path[64];

	if (!view_process_of(v, load_relaxed(&c->owner), p) || p->state == '-')
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%u", p->pid,
		 load_relaxed(&c->tid));
	return p->state == '?' || !access(path, F_OK);
}

static struct stall *stall_of_call(struct stalls *s, const struct urxe_call *c,
				   const struct view_process *p,
				   const char *kind)
{
	struct stall *out = stall_add(s, kind, p, load_relaxed(&c->since));

	out->since = load_relaxed(&c->since);
	out->tid = load_relaxed(&c->tid);
	if (out->tid != (uint32_t)p->pid)
		stall_append(out, "thread %u ", out->tid);
	return out;
}

/* ---------------------------------------------------------- channels */

static const struct view_fifo *fifo_find(const struct view *v, uint64_t ino)
{
	uint32_t i;

	for (i = 0; i < v->fifos; i++)
		if (v->fifo[i].ino == ino)
			return &v->fifo[i];
	return NULL;
}

static const char *armed_word(const struct view_cq *q)
{
	switch (URXE_ARM_KIND(load_relaxed(&q->sh.arm))) {
	case URXE_ARM_NONE:
		return "not armed";
	case URXE_ARM_SOLICITED:
		return "armed for solicited completions";
	default:
		return "armed";
	}
}

#define CQS_LISTED 4

static void call_of_cq_event(struct stall *out, const struct view *v,
			     const struct urxe_call *c)
{
	const struct view_fifo *f = fifo_find(v, load_relaxed(&c->object));
	const struct view_cq *q;
	uint32_t n = 0;

	out->level = STALL_IDLE;
	stall_append(out, "waits in ibv_get_cq_event");
	for (q = v->cq; f && q < v->cq + v->cqs; q++) {
		if (q->ctx->slot != f->slot || q->ctx->gen != f->gen ||
		    q->sh.channel != f->number + 1)
			continue;
		if (n++ < CQS_LISTED)
			stall_append(out, "%s CQ %u (%s, %u unread)",
				     n > 1 ? "," : " for an event of", q->index,
				     armed_word(q), q->unread);
		out->cq = n > 1 ? 0 : q->index;
	}
	if (n > CQS_LISTED)
		stall_append(out, " and %u more", n - CQS_LISTED);
	if (!n) {
		out->level = STALL_STALLS;
		stall_append(
			out,
			": no CQ uses this channel, so no event can arrive");
	}
	stall_ends(out, "a completion in a CQ that is armed");
}

/* ---------------------------------------------------------- destruction */

/*
 * Calls that wait until events are acknowledged: the call, its object, and
 * the function that acknowledges.
 */
static const struct {
	const char *call, *object, *acknowledges;
} waits[URXE_CALL_KINDS] = {
	[URXE_CALL_DESTROY_CQ] = { "ibv_destroy_cq", "CQ",
				   "ibv_ack_cq_events or ibv_ack_async_event" },
	[URXE_CALL_DESTROY_QP] = { "ibv_destroy_qp", "QP",
				   "ibv_ack_async_event" },
	[URXE_CALL_DESTROY_SRQ] = { "ibv_destroy_srq", "SRQ",
				    "ibv_ack_async_event" },
	[URXE_CALL_DESTROY_ID] = { "rdma_destroy_id", NULL,
				   "rdma_ack_cm_event" },
	[URXE_CALL_LEAVE_MULTICAST] = { "rdma_leave_multicast", NULL,
					"rdma_ack_cm_event" },
	[URXE_CALL_MIGRATE_ID] = { "rdma_migrate_id", NULL,
				   "rdma_ack_cm_event" },
};

static void call_of_destroy(struct stalls *s, const struct urxe_call *c,
			    const struct view_process *p)
{
	const uint32_t kind = load_relaxed(&c->kind);
	const uint32_t n = load_relaxed(&c->events);
	const uint32_t object = (uint32_t)load_relaxed(&c->object);
	struct stall *out;

	if (!n) /* the call does not wait */
		return;
	out = stall_of_call(s, c, p, "unacked");
	stall_append(out, "waits in %s", waits[kind].call);
	if (waits[kind].object)
		stall_append(out,
			     kind == URXE_CALL_DESTROY_QP ? " of %s 0x%x" :
							    " of %s %u",
			     waits[kind].object, object);
	stall_append(out, " until %u event%s acknowledged", n, plural_is(n));
	if (!waits[kind].object)
		stall_append(out, "; the last one is RDMA_CM_EVENT_%s",
			     reason_cm_event_name(load_relaxed(&c->event)));
	out->cq = kind == URXE_CALL_DESTROY_CQ ? object : 0;
	stall_ends(out, "%s by %s", waits[kind].acknowledges, process_name(p));
}

static void call_of_quiesce(struct stall *out, const struct view *v,
			    const struct urxe_call *c)
{
	static const char *const calls[URXE_CALL_KINDS] = {
		[URXE_CALL_QUIESCE_MR] = "ibv_dereg_mr or ibv_rereg_mr",
		[URXE_CALL_QUIESCE_MW] = "ibv_dealloc_mw or ibv_bind_mw",
		[URXE_CALL_QUIESCE_QP] = "ibv_modify_qp or ibv_destroy_qp",
		[URXE_CALL_QUIESCE_CQ] = "ibv_destroy_cq or ibv_resize_cq",
		[URXE_CALL_QUIESCE_SRQ] = "ibv_destroy_srq",
	};
	const uint64_t i = load_relaxed(&c->object);
	const struct view_qp *q = NULL;

	if (i < URXE_MAX_QP)
		q = view_qp(v, URXE_DIR_QPN(load_relaxed(&v->dev->qp[i])));
	stall_append(out, "waits in %s until no request uses the object",
		     calls[load_relaxed(&c->kind)]);
	if (!q) {
		stall_ends(out, "the end of the copy");
		return;
	}
	stall_append(out, ": QP 0x%x of %s executes such a request", q->qpn,
		     process_name(&q->process));
	if (process_is_stopped(&q->process))
		stall_append(out, ", and the process is stopped");
	out->peer = q->qpn;
	stall_ends(
		out,
		"the end of the copy; if the process is stopped, SIGCONT or SIGKILL to %s",
		process_name(&q->process));
}

static void call_of(struct stalls *s, const struct view *v,
		    const struct urxe_call *c, const struct view_process *p)
{
	struct stall *out;

	switch (load_relaxed(&c->kind)) {
	case URXE_CALL_GET_CQ_EVENT:
		call_of_cq_event(stall_of_call(s, c, p, "get-cq-event"), v, c);
		break;
	case URXE_CALL_GET_ASYNC_EVENT:
		out = stall_of_call(s, c, p, "get-async-event");
		out->level = STALL_IDLE;
		stall_append(out, "waits in ibv_get_async_event");
		stall_ends(out, "an asynchronous event of the context");
		break;
	case URXE_CALL_GET_CM_EVENT:
		out = stall_of_call(s, c, p, "get-cm-event");
		out->level = STALL_IDLE;
		stall_append(out, "waits in rdma_get_cm_event");
		stall_of_cm_channel(out, v, load_relaxed(&c->object));
		break;
	case URXE_CALL_DESTROY_CQ ... URXE_CALL_MIGRATE_ID:
		call_of_destroy(s, c, p);
		break;
	case URXE_CALL_QUIESCE_MR ... URXE_CALL_QUIESCE_SRQ:
		call_of_quiesce(stall_of_call(s, c, p, "in-use"), v, c);
		break;
	}
}

void stalls_of_calls(struct stalls *s, const struct view *v)
{
	struct view_process p;
	uint32_t i;

	for (i = 0; i < URXE_MAX_CALLS; i++)
		if (load_relaxed(&v->dev->call[i].owner) &&
		    call_process(v, &v->dev->call[i], &p))
			call_of(s, v, &v->dev->call[i], &p);
}

/* ---------------------------------------------------------- failed WRs */

static void stall_of_failed(struct stalls *s, const struct view *v,
			    const struct view_ctx *c,
			    const struct urxe_failed *f)
{
	const uint32_t qpn = load_relaxed(&f->qpn);
	struct urxe_reason r;
	struct stall *out;
	char text[240];

	if (!reason_kept(&f->why, &r))
		return;
	reason_text(&r, text, sizeof(text));
	out = stall_add(s, "failed", &c->process,
			(uint64_t)c->slot << 32 | load_relaxed(&f->nth));
	out->level = STALL_IDLE;
	out->since = load_relaxed(&f->at);
	out->qpn = qpn;
	if (r.qpn == qpn) {
		out->has_wr = true;
		out->wr_id = r.wr_id;
		stall_append(out, "%s wr_id %llu failed with %s (%u): ",
			     reason_op_name(r.opcode),
			     (unsigned long long)r.wr_id,
			     reason_status_name(r.status), r.status);
	} else if (r.qpn) {
		stall_append(out, "refused %s wr_id %llu of QP 0x%x: ",
			     reason_op_name(r.opcode),
			     (unsigned long long)r.wr_id, r.qpn);
	} else {
		stall_append(out, "moved to ERR: ");
	}
	stall_append(out, "%s%s; rule: %s; usual cause: %s", text,
		     view_qp(v, qpn) ? "" : "; the QP is destroyed",
		     reason_source(&r), reason_cause(&r));
}

/*
 * The failed WRs of each live context, oldest first. The table is a ring,
 * ordered by `nth`.
 */
void stalls_of_failed(struct stalls *s, const struct view *v)
{
	const struct urxe_failed *f;
	uint32_t i, k, first;

	for (i = 0; i < v->ctxs; i++) {
		f = v->ctx[i].failed;
		if (!v->ctx[i].alive)
			continue;
		for (first = 0, k = 1; k < URXE_FAILED; k++)
			if (load_relaxed(&f[k].nth) &&
			    load_relaxed(&f[k].nth) <
				    load_relaxed(&f[first].nth))
				first = k;
		for (k = 0; k < URXE_FAILED; k++)
			stall_of_failed(s, v, &v->ctx[i],
					&f[(first + k) % URXE_FAILED]);
	}
}
