// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: creating, arming, moderating, destroying. */
#include <errno.h>
#include <stdlib.h>

#include "context.h"
#include "cq.h"
#include "engine/cq_moderate.h"
#include "engine/event.h"
#include "engine/log.h"
#include "engine/poll.h"
#include "engine/service.h"
#include "event.h"
#include "pd.h"
#include "verbs.h"

void vcq_set_size(struct urxe_vcq *vcq)
{
	uint32_t depth = vcq->cq.ring.mask + 1;

	vcq->v.cq.cqe = depth > URXE_MAX_CQE ? URXE_MAX_CQE : depth;
}

struct urxe_vcq *vcq_create(struct ibv_context *ibctx,
				 const struct cq_request *r)
{
	struct urxe_context *ctx = to_uctx(ibctx);
	struct cq_params p = {
		.cqe = r->cqe,
		.async_fifo = event_async_fifo(ibctx),
		.flags = r->flags,
		.single_threaded = r->single_threaded,
	};
	struct urxe_vcq *vcq;
	int ret;

	if (r->cqe < 1 || r->cqe > URXE_MAX_CQE || r->vector < 0 ||
	    r->vector >= URXE_NUM_COMP_VECTORS)
		return urxe_fail(-EINVAL, "ibv_create_cq: cqe or comp_vector");
	if (r->channel) {
		ret = fifo_number(r->channel->fd, &p.channel);
		if (ret)
			return urxe_fail(ret, "ibv_create_cq: the channel");
		p.channel++;
	}
	vcq = calloc(1, sizeof(*vcq));
	if (!vcq)
		return NULL;
	p.user = (uintptr_t)&vcq->v.cq;
	ret = cq_open(&vcq->cq, ctx, &p);
	if (ret) {
		free(vcq);
		return urxe_fail(ret, "ibv_create_cq");
	}
	vcq->v.cq.handle = vcq->cq.index;
	vcq_set_size(vcq);
	return vcq;
}

struct ibv_cq *urxe_create_cq(struct ibv_context *ibctx, int cqe,
			      struct ibv_comp_channel *channel, int vector)
{
	const struct cq_request r = { .cqe = cqe,
				      .vector = vector,
				      .channel = channel };
	int saved = errno;
	struct urxe_vcq *vcq = vcq_create(ibctx, &r);

	if (!vcq)
		return NULL;
	errno = saved;
	return &vcq->v.cq;
}

int urxe_destroy_cq(struct ibv_cq *ibcq)
{
	struct urxe_vcq *vcq = to_vcq(ibcq);
	int saved = errno;

	if (!cq_unlink(&vcq->cq)) {
		urxe_why("ibv_destroy_cq: QPs or SRQs still use it");
		return EBUSY;
	}
	event_wait_cq(vcq);
	cq_close(&vcq->cq);
	if (vcq->parent)
		pd_put(vcq->parent);
	free(vcq);
	errno = saved;
	return 0;
}

int urxe_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	const struct ibv_moderate_cq *m = &attr->moderate;
	struct urxe_cq *cq = to_ucq(ibcq);

	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	if (!(attr->attr_mask & IBV_CQ_ATTR_MODERATE))
		return 0;
	store_relaxed(&cq->sh->moderate,
		      (uint32_t)m->cq_period << 16 | m->cq_count);
	/* what waits now waits by the old limits no more */
	if (load_relaxed(&cq->sh->held_back))
		cq_fire(&cq->view, true);
	if (m->cq_period)
		service_need(cq->ctx);
	return 0;
}

/*
 * Would a poll find a completion?  Either we see it, or its producer sees that
 * the CQ is armed.
 */
static bool cq_has_more(struct urxe_vcq *vcq)
{
	struct urxe_cq *cq = &vcq->cq;
	bool more;

	/* whoever is polling finds it */
	if (cq->single_threaded ? load_relaxed(&vcq->batch_thread) != 0 :
				  pthread_mutex_trylock(&cq->lock))
		return false;
	atomic_thread_fence(memory_order_seq_cst);
	gate_enter(&cq->gate);
	more = cq->backlog || poll_ring(cq);
	gate_leave(&cq->gate);
	cq_unlock(cq);
	return more;
}

/*
 * With completions left unpolled the event comes at once.  The specification
 * has it come with the next one (IB 11.4.2.2), for which a program may wait in
 * vain that arms and does not poll once more.  UCX does that: it is written
 * for ConnectX, whose arming names the poller's position.
 */
int urxe_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct urxe_vcq *vcq = to_vcq(ibcq);
	struct urxe_cq *cq = &vcq->cq;
	uint32_t want = solicited_only ? URXE_ARM_SOLICITED : URXE_ARM_NEXT;
	uint32_t arm;

	if (!cq->sh->channel)
		return 0; /* nobody could hear it */
	arm = load_relaxed(&cq->sh->arm);
	if (arm == URXE_ARM_NONE)
		cq_hold_reset(cq);
	/* an arming for any completion is not weakened by a later one */
	do {
		if (arm == URXE_ARM_NEXT)
			want = URXE_ARM_NEXT;
	} while (!cas_seq_cst(&cq->sh->arm, &arm, want));
	/* a peer changed a QP before we armed: nobody else will say so */
	if (load_seq_cst(&cq->sh->attention) ||
	    (want == URXE_ARM_NEXT && !cq_is_moderated(cq->sh) &&
	     cq_has_more(vcq)))
		cq_fire(&cq->view, true);
	return 0;
}

/* Core has read one of this CQ's events from the channel. */
void urxe_cq_event(struct ibv_cq *ibcq)
{
	event_resend(to_ucq(ibcq)->ctx);
}
