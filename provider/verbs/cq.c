// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: creation, arming, moderation, resizing, destruction. */
#include <errno.h>
#include <stdlib.h>

#include "context.h"
#include "cq.h"
#include "engine/poll/cq_arm.h"
#include "engine/cq/cq_moderate.h"
#include "engine/cq/event.h"
#include "engine/core/log.h"
#include "engine/poll/cq_resize.h"
#include "engine/poll/poller.h"
#include "engine/run/service.h"
#include "event.h"
#include "parent_domain.h"
#include "profile.h"
#include "verbs.h"

/* Set ibv_cq.cqe to the size of the ring, at most max_cqe of the device. */
static void vcq_set_size(struct urxe_vcq *vcq)
{
	const uint32_t most = (uint32_t)profile_limit(vcq->cq.ctx, max_cqe);
	uint32_t depth = vcq->cq.ring.mask + 1;

	vcq->v.cq.cqe = (int)(depth > most ? most : depth);
}

#define CQ_MASKS (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)
#define CQ_FLAGS \
	(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
#define TIMESTAMP_FLAGS                        \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define WC_FLAGS (IBV_WC_STANDARD_FLAGS | TIMESTAMP_FLAGS)

static int cq_check_init(const struct urxe_context *ctx,
			 const struct ibv_cq_init_attr_ex *a, uint32_t flags,
			 const struct urxe_pd *parent)
{
	const uint32_t max_cqe = (uint32_t)profile_limit(ctx, max_cqe);
	const uint32_t vectors = (uint32_t)profile_limit(ctx, comp_vectors);

	if (a->comp_mask & ~CQ_MASKS)
		return fabric_fail(
			EINVAL, "comp_mask is 0x%x, but only 0x%x is supported",
			a->comp_mask, CQ_MASKS);
	if (a->wc_flags & ~(uint64_t)WC_FLAGS)
		return fabric_fail(EOPNOTSUPP,
				   "wc_flags 0x%llx are not supported",
				   (unsigned long long)(a->wc_flags &
							~(uint64_t)WC_FLAGS));
	if (a->wc_flags & TIMESTAMP_FLAGS &&
	    !profile_has(ctx, PROFILE_HAS(CQ_TIMESTAMP)))
		return profile_refuse(
			ctx, PROFILE_features, EOPNOTSUPP,
			"completion timestamps are not supported");
	if (flags & ~CQ_FLAGS)
		return fabric_fail(EOPNOTSUPP,
				   "flags are 0x%x, but only 0x%x is supported",
				   flags, CQ_FLAGS);
	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    (!parent || !parent->parent))
		return fabric_fail(EINVAL,
				   "parent_domain is not a parent domain");
	if (a->cqe < 1 || a->cqe > max_cqe)
		return profile_refuse(ctx, PROFILE_max_cqe, EINVAL,
				      "cqe is %u, and must be 1 to %u", a->cqe,
				      max_cqe);
	if (a->comp_vector >= vectors)
		return profile_refuse(
			ctx, PROFILE_comp_vectors, EINVAL,
			"comp_vector is %u, and must be less than %u",
			a->comp_vector, vectors);
	return 0;
}

/* Create the engine's part of the CQ, and its event tag.  -errno */
static int vcq_setup(struct urxe_vcq *vcq, struct ibv_context *ibctx,
		     const struct ibv_cq_init_attr_ex *a, uint32_t flags)
{
	struct cq_params p = {
		.cqe = a->cqe,
		.async_fifo = event_async_fifo(ibctx),
		.single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED ||
				   pd_single_threaded(vcq->parent),
	};
	int ret;

	if (a->wc_flags & TIMESTAMP_FLAGS)
		p.flags |= URXE_CQ_TIMESTAMP;
	if (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
		p.flags |= URXE_CQ_IGNORE_OVERRUN;
	if (a->channel) {
		if (a->channel->context != ibctx)
			return fabric_fail(
				EINVAL,
				"the completion channel is of another context");
		ret = fifo_number(a->channel->fd, &p.channel);
		if (ret)
			return fabric_fail(-ret, "invalid completion channel");
		p.channel++;
	}
	ret = event_watch(ibctx, &vcq->v.cq, EVENT_CQ, &vcq->tag);
	if (ret)
		return ret;
	p.tag = vcq->tag;
	ret = cq_open(&vcq->cq, to_uctx(ibctx), &p);
	if (ret)
		event_forget(ibctx, vcq->tag);
	return ret;
}

struct ibv_cq_ex *urxe_create_cq_ex(struct ibv_context *ibctx,
				    struct ibv_cq_init_attr_ex *a)
{
	struct urxe_pd *parent = NULL;
	int ret;
	struct urxe_vcq *vcq;
	uint32_t flags = 0;

	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		flags = a->flags;
	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && a->parent_domain &&
	    a->parent_domain->context == ibctx)
		parent = pd_find(a->parent_domain);
	ret = cq_check_init(to_uctx(ibctx), a, flags, parent);
	if (ret)
		return urxe_fail(ret, "ibv_create_cq");
	vcq = calloc(1, sizeof(*vcq));
	if (!vcq)
		return NULL;
	vcq->parent = parent;
	ret = vcq_setup(vcq, ibctx, a, flags);
	if (ret) {
		free(vcq);
		return urxe_fail(ret, "ibv_create_cq");
	}
	if (parent)
		pd_get(parent);
	vcq->v.cq.handle = vcq->cq.index;
	vcq_set_size(vcq);
	cq_ex_set_calls(&vcq->v.cq_ex, a->wc_flags);
	return &vcq->v.cq_ex;
}

struct ibv_cq *urxe_create_cq(struct ibv_context *ibctx, int cqe,
			      struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq_init_attr_ex a = { .cqe = (uint32_t)cqe,
					 .channel = channel,
					 .comp_vector = (uint32_t)vector };
	struct ibv_cq_ex *cq = urxe_create_cq_ex(ibctx, &a);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

int urxe_destroy_cq(struct ibv_cq *ibcq)
{
	struct urxe_vcq *vcq = to_vcq(ibcq);

	if (!cq_is_named(ibcq))
		return ENOENT;
	if (!poll_unlink(&vcq->cq)) {
		urxe_why("ibv_destroy_cq: the CQ is still used by QPs or SRQs");
		return EBUSY;
	}
	event_wait_cq(vcq);
	cq_close(&vcq->cq);
	if (vcq->parent)
		pd_put(vcq->parent);
	free(vcq);
	return 0;
}

int urxe_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	const struct ibv_moderate_cq *m = &attr->moderate;
	struct urxe_cq *cq = to_ucq(ibcq);

	if (!cq_is_named(ibcq))
		return ENOENT;
	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE) {
		urxe_why(
			"ibv_modify_cq: attr_mask is 0x%x, but only 0x%x is supported",
			attr->attr_mask, IBV_CQ_ATTR_MODERATE);
		return EINVAL;
	}
	if (!(attr->attr_mask & IBV_CQ_ATTR_MODERATE))
		return 0;
	if (m->cq_period && !service_need(cq->ctx)) {
		urxe_why(
			"ibv_modify_cq: the service thread, which times the events, cannot be created");
		return EAGAIN;
	}
	store_relaxed(&cq->sh->moderate,
		      URXE_MODERATE(m->cq_count, m->cq_period));
	/* events that the old limits hold back are raised at once */
	if (load_relaxed(&cq->sh->held_back))
		cq_fire(&cq->view, true);
	return 0;
}

/* EINVAL also if more completions are unpolled than the new size can hold. */
int urxe_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct urxe_vcq *vcq = to_vcq(ibcq);
	struct urxe_cq *cq = &vcq->cq;
	const int most = (int)profile_limit(cq->ctx, max_cqe);
	int ret;

	if (!cq_is_named(ibcq))
		return ENOENT;
	if (cqe < 1 || cqe > most) {
		urxe_why("ibv_resize_cq: cqe is %d, and must be 1 to %d", cqe,
			 most);
		return profile_error(&cq->ctx->profile, PROFILE_max_cqe,
				     EINVAL);
	}
	if (cq_in_batch(cq)) {
		urxe_why(
			"ibv_resize_cq: called between ibv_start_poll and ibv_end_poll");
		return EBUSY;
	}
	cq_lock(cq);
	gate_enter(&cq->gate);
	ret = cq_resize(cq, cqe);
	vcq_set_size(vcq);
	gate_leave(&cq->gate);
	cq_unlock(cq);
	return ret;
}

int urxe_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	int ret = ENOENT;

	if (likely(cq_is_named(ibcq)))
		ret = cq_arm(to_ucq(ibcq), solicited_only ? URXE_ARM_SOLICITED :
							    URXE_ARM_NEXT);
	if (unlikely(ret))
		errno = ret;
	return ret;
}

/*
 * libibverbs calls this after it has read an event of @ibcq from the channel.
 */
void urxe_cq_event(struct ibv_cq *ibcq)
{
	struct urxe_cq *cq = to_ucq(ibcq);

	cq_event_fetched(cq);
	event_resend(cq->ctx);
}
