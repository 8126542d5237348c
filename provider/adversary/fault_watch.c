// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Triggers of fault rules. The interposers of this file count the WRs and
 * receives that the program posts and the completions that it polls, at the
 * end of the call, and carry out the rules that apply. They also install the
 * transport of fault_wr.c in new QPs. Only the calls that a rule counts are
 * interposed.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/core/log.h"
#include "engine/qp/srq.h"
#include "fault.h"
#include "verbs/context.h"
#include "verbs/cq.h"
#include "verbs/qp.h"
#include "verbs/srq.h"

static struct pabi_ops next;
static struct faults *faults;

/* 0, or -EINVAL with fabric_why(): the fabric lacks a link that a rule names.
 */
static int links_check(const struct faults *f, const struct urxe_fabric *fabric)
{
	const struct fault_rule *r;
	struct urxe_link_end end;

	for (r = f->rule; r != f->rule + f->n; r++) {
		if (!*r->link || link_end_find(fabric, r->link, &end))
			continue;
		return fabric_fail(
			EINVAL,
			"fault rule \"%s\": the fabric %s has no link %s",
			r->text, fabric->dir, r->link);
	}
	return 0;
}

int fault_open(struct faults *f, const struct urxe_context *ctx)
{
	const struct fault_subject s = fault_subject_ctx(ctx);
	int ret;

	if (fault_device_is_dead())
		return EIO;
	ret = links_check(f, ctx->fabric);
	return ret ? ret : fault_errno(f, FAULT_ibv_open_device, &s);
}

void fault_wrap(struct pabi_ops *ops, struct faults *f)
{
	fault_wrap_watch(ops, f);
	fault_wrap_verbs(ops, f);
}

/* How often each rule strikes at the end of a call. */
struct strikes {
	unsigned int n[FAULT_RULES];
	bool any;
};

/*
 * Return whether the call has an object of the kind that @r is about. A
 * receive of an SRQ has no QP.
 */
static bool rule_has_object(const struct fault_rule *r,
			    const struct fault_subject *s,
			    const struct fault_place *where)
{
	switch (r->what) {
	case FAULT_QP:
		return s->qpn;
	case FAULT_CQ:
		return where->cq;
	case FAULT_SRQ:
		return where->srq;
	default:
		return r->what > FAULT_SRQ;
	}
}

/*
 * Count @s for each rule that is triggered by @at, and note the rules that
 * strike.
 */
static void strikes_match(struct strikes *t, enum fault_at at,
			  const struct fault_subject *s,
			  const struct fault_place *where)
{
	unsigned int i;

	for (i = 0; i < faults->n; i++) {
		struct fault_rule *r = &faults->rule[i];

		if (r->at != at || !rule_has_object(r, s, where) ||
		    !fault_rule_strikes(faults, r, s))
			continue;
		t->n[i]++;
		t->any = true;
	}
}

/* Carry out the noted effects. No lock is held; errno is kept. */
static void strikes_carry_out(struct strikes *t,
			      const struct fault_place *where)
{
	int saved = errno;
	unsigned int i;

	if (!t->any)
		return;
	for (i = 0; i < faults->n; i++)
		for (; t->n[i]; t->n[i]--)
			fault_strike(&faults->rule[i], where);
	t->any = false;
	errno = saved;
}

/* Return whether any rule is triggered by @at. */
static bool moment_counts(enum fault_at at)
{
	const struct fault_rule *r;

	for (r = faults->rule; r != faults->rule + faults->n; r++)
		if (r->what >= FAULT_QP && r->at == at)
			return true;
	return false;
}

/* ------------------------------------------------------- posts */

/*
 * Read before the WR is posted: afterwards another thread may poll the
 * completion and destroy the QP.
 */
static struct fault_place place_of_send(const struct urxe_qp *qp)
{
	return (struct fault_place){ .ctx = qp->ctx,
				     .qpn = qp->qpn,
				     .cq = qp->scq };
}

static int watch_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
			   struct ibv_send_wr **bad)
{
	const struct urxe_qp *qp = to_uqp(ibqp);
	struct fault_subject s = fault_subject_qp(qp);
	const struct fault_place where = place_of_send(qp);
	int ret = next.post_send(ibqp, wr, bad);
	const struct ibv_send_wr *end = ret ? *bad : NULL;
	struct strikes t = { 0 };

	for (s.has_wr_id = true; wr && wr != end; wr = wr->next) {
		s.op = FAULT_OP(wr->opcode);
		s.wr_id = wr->wr_id;
		strikes_match(&t, FAULT_AT_POST, &s, &where);
		strikes_carry_out(&t, &where);
	}
	return ret;
}

static int watch_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
			 struct ibv_mw_bind *bind)
{
	const struct urxe_qp *qp = to_uqp(ibqp);
	struct fault_subject s = fault_subject_qp(qp);
	const struct fault_place where = place_of_send(qp);
	int ret = next.bind_mw(ibqp, mw, bind);
	struct strikes t = { 0 };

	if (ret)
		return ret;
	s.op = FAULT_OP(IBV_WR_BIND_MW);
	s.wr_id = bind->wr_id;
	s.has_wr_id = true;
	strikes_match(&t, FAULT_AT_POST, &s, &where);
	strikes_carry_out(&t, &where);
	return 0;
}

/* The function that was replaced; all QPs have the same. */
static int (*_Atomic next_wr_complete)(struct ibv_qp_ex *ex);

/*
 * Count the WRs of the batch before it is posted. No other thread uses its
 * WQEs yet.
 */
static void strikes_match_batch(struct strikes *t, const struct urxe_vqp *vqp,
				const struct fault_place *where)
{
	const struct urxe_qp *qp = &vqp->qp;
	struct fault_subject s = fault_subject_qp(qp);
	uint32_t i, end = qp->sq.prod + (vqp->batch.wqe != NULL);
	const struct urxe_wqe *w;

	for (i = qp->batch_first; i != end; i++) {
		w = sq_slot(&qp->sq, i);
		s.op = FAULT_OP(w->opcode);
		s.wr_id = w->wr_id;
		s.has_wr_id = true;
		strikes_match(t, FAULT_AT_POST, &s, where);
	}
}

static int watch_wr_complete(struct ibv_qp_ex *ex)
{
	struct urxe_vqp *vqp = container_of(ex, struct urxe_vqp, v.qp_ex);
	const struct fault_subject s = fault_subject_qp(&vqp->qp);
	const struct fault_place where = place_of_send(&vqp->qp);
	struct strikes t = { 0 };
	int ret = fault_errno(faults, FAULT_ibv_wr_complete, &s);

	if (ret) {
		ex->wr_abort(ex);
		errno = ret;
		return ret;
	}
	if (!vqp->batch.error)
		strikes_match_batch(&t, vqp, &where);
	ret = load_relaxed(&next_wr_complete)(ex);
	if (!ret)
		strikes_carry_out(&t, &where);
	return ret;
}

/* ------------------------------------------------------- receives */

static void watch_receives(const struct ibv_recv_wr *wr,
			   const struct ibv_recv_wr *end,
			   struct fault_subject s,
			   const struct fault_place *where)
{
	struct strikes t = { 0 };

	for (s.has_wr_id = true; wr && wr != end; wr = wr->next) {
		s.wr_id = wr->wr_id;
		strikes_match(&t, FAULT_AT_RECV, &s, where);
		strikes_carry_out(&t, where);
	}
}

static int watch_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
			   struct ibv_recv_wr **bad)
{
	const struct urxe_qp *qp = to_uqp(ibqp);
	const struct fault_subject s = fault_subject_qp(qp);
	const struct fault_place where = { .ctx = qp->ctx,
					   .qpn = qp->qpn,
					   .cq = qp->rcq };
	int ret = next.post_recv(ibqp, wr, bad); /* @qp may be gone */

	watch_receives(wr, ret ? *bad : NULL, s, &where);
	return ret;
}

static int watch_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad)
{
	struct urxe_srq *srq = to_usrq(ibsrq);
	const struct fault_place where = { .ctx = srq->ctx, .srq = srq };
	const struct fault_subject s = fault_subject_ctx(srq->ctx);
	int ret = next.post_srq_recv(ibsrq, wr, bad);

	watch_receives(wr, ret ? *bad : NULL, s, &where);
	return ret;
}

/* ------------------------------------------------------- completions */

/* Return the type of QP @qpn as a bit, or 0 if the QP is destroyed. */
static uint32_t type_of(struct urxe_context *ctx, uint32_t qpn)
{
	const struct urxe_qp *qp;
	uint32_t type;

	pthread_mutex_lock(&ctx->lock);
	qp = context_qp(ctx, qpn);
	type = qp && qp->qpn == qpn ? FAULT_TYPE(qp->type) : 0;
	pthread_mutex_unlock(&ctx->lock);
	return type;
}

static void watch_completion(struct urxe_cq *cq, uint32_t qpn, uint64_t wr_id)
{
	struct fault_subject s = fault_subject_ctx(cq->ctx);
	const struct fault_place where = { .ctx = cq->ctx,
					   .qpn = qpn,
					   .cq = cq };
	struct strikes t = { 0 };

	s.qpn = qpn;
	s.type = type_of(cq->ctx, qpn);
	s.has_wr_id = true;
	s.wr_id = wr_id;
	strikes_match(&t, FAULT_AT_COMPLETION, &s, &where);
	strikes_carry_out(&t, &where);
}

static int watch_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	int i, got = next.poll_cq(ibcq, n, wc);

	for (i = 0; i < got; i++)
		watch_completion(to_ucq(ibcq), wc[i].qp_num, wc[i].wr_id);
	return got;
}

static struct cq_ex_polls next_ex;

static int watch_polled(struct ibv_cq_ex *ex, int ret)
{
	struct urxe_vcq *vcq = container_of(ex, struct urxe_vcq, v.cq_ex);

	if (!ret)
		watch_completion(&vcq->cq, vcq->current.qpn, ex->wr_id);
	return ret;
}

static int watch_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	return watch_polled(ex, load_relaxed(&next_ex.start)(ex, attr));
}

static int watch_next_poll(struct ibv_cq_ex *ex)
{
	return watch_polled(ex, load_relaxed(&next_ex.next)(ex));
}

/* ------------------------------------------------------- objects */

static struct ibv_qp *watch_qp(struct ibv_qp *ibqp)
{
	struct urxe_vqp *vqp = ibqp ? to_vqp(ibqp) : NULL;
	struct ibv_qp_ex *ex;

	if (!ibqp)
		return NULL;
	/* an XRC_RECV QP has no send queue */
	if (faults_have(faults, FAULT_WR) && vqp->qp.scq &&
	    !fault_watch_wrs(faults, &vqp->qp)) {
		next.destroy_qp(ibqp);
		errno = ENOMEM;
		return NULL;
	}
	if (!(pabi_qp_tail(&vqp->v)->comp_mask & PABI_QP_IS_EX) ||
	    !(moment_counts(FAULT_AT_POST) ||
	      faults_have_call(faults, FAULT_ibv_wr_complete)))
		return ibqp;
	ex = &vqp->v.qp_ex;
	store_relaxed(&next_wr_complete, ex->wr_complete);
	ex->wr_complete = watch_wr_complete;
	return ibqp;
}

static struct ibv_qp *watch_create_qp(struct ibv_pd *pd,
				      struct ibv_qp_init_attr *init)
{
	return watch_qp(next.create_qp(pd, init));
}

static struct ibv_qp *watch_create_qp_ex(struct ibv_context *ctx,
					 struct ibv_qp_init_attr_ex *attr)
{
	return watch_qp(next.create_qp_ex(ctx, attr));
}

static int watch_destroy_qp(struct ibv_qp *ibqp)
{
	void *before = to_uqp(ibqp)->transport_stacked;
	int ret = next.destroy_qp(ibqp);

	if (!ret)
		free(before);
	return ret;
}

static struct ibv_cq_ex *watch_create_cq_ex(struct ibv_context *ctx,
					    struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *ex = next.create_cq_ex(ctx, attr);

	if (ex)
		cq_ex_polls_replace(ex, &next_ex, watch_start_poll,
				    watch_next_poll);
	return ex;
}

static void watch_free_context(struct ibv_context *ibctx)
{
	fault_closing(to_uctx(ibctx));
	next.free_context(ibctx);
}

void fault_wrap_watch(struct pabi_ops *ops, struct faults *f)
{
	next = *ops;
	faults = f;
	ops->free_context = watch_free_context;
	ops->create_qp = watch_create_qp;
	ops->create_qp_ex = watch_create_qp_ex;
	ops->destroy_qp = watch_destroy_qp;
	if (moment_counts(FAULT_AT_POST)) {
		ops->post_send = watch_post_send;
		ops->bind_mw = watch_bind_mw;
	}
	if (moment_counts(FAULT_AT_RECV)) {
		ops->post_recv = watch_post_recv;
		ops->post_srq_recv = watch_post_srq_recv;
	}
	if (moment_counts(FAULT_AT_COMPLETION)) {
		ops->poll_cq = watch_poll_cq;
		ops->create_cq_ex = watch_create_cq_ex;
	}
}
