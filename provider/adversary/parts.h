/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The adversary's parts: each puts its verbs in front of those in ops. */
#pragma once

#include "adversary.h"
#include "base/atomic.h"

/* An object of that context was made; async.c. */
void async_begin(struct ibv_context *ibctx);

/* The ibv_start_poll of each CQ is the same until it is replaced here. */
typedef int start_poll_fn(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);

static inline void start_poll_replace(struct ibv_cq_ex *cq,
				      start_poll_fn *_Atomic *next,
				      start_poll_fn *with)
{
	store_release(next, cq->start_poll);
	cq->start_poll = with;
}

/* The context's GRHs over IPv4; undefined.c. */
void undefined_opened(const struct adversary *a, struct urxe_context *ctx);

void async_wrap(const struct adversary *a);
void meet_wrap(struct pabi_ops *ops, const struct adversary *a); /* meet.c */
void carry_wrap(struct pabi_ops *ops, const struct adversary *a); /* carry.c */
void recv_wrap(struct pabi_ops *ops, const struct adversary *a); /* recv.c */
void wake_wrap(struct pabi_ops *ops, const struct adversary *a); /* wake.c */
void slow_wrap(struct pabi_ops *ops, const struct adversary *a); /* slow.c */
