/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adversary's interposers. Each *_wrap() saves *ops and installs its own
 * functions in it; those call the saved ones. Called once in a process by
 * adversary_wrap().
 */
#pragma once

#include "adversary.h"
#include "base/atomic.h"

/*
 * Have the events of @ibctx delivered late, if the option "async" is set;
 * async.c. Called when an object is created.
 */
void async_begin(struct ibv_context *ibctx);

/*
 * Install @with as ibv_start_poll of @cq, which may be NULL, and save the
 * function that it replaces in @next. All CQs have the same function there
 * before it is replaced. Return @cq.
 */
typedef int start_poll_fn(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);

static inline struct ibv_cq_ex *start_poll_replace(struct ibv_cq_ex *cq,
						   start_poll_fn *_Atomic *next,
						   start_poll_fn *with)
{
	if (!cq)
		return NULL;
	store_release(next, cq->start_poll);
	cq->start_poll = with;
	return cq;
}

/* Set the seed of the undefined bytes of the GRHs of @ctx; undefined.c. */
void undefined_opened(const struct adversary *a, struct urxe_context *ctx);

void async_wrap(const struct adversary *a);
/* register.c */
void register_wrap(struct pabi_ops *ops, const struct adversary *a);
void recv_wrap(struct pabi_ops *ops, const struct adversary *a); /* recv.c */
void wake_wrap(struct pabi_ops *ops, const struct adversary *a); /* wake.c */
void slow_wrap(struct pabi_ops *ops, const struct adversary *a); /* slow.c */
