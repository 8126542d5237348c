/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion queues, as libibverbs has them. */
#pragma once

#include "abi/pabi/pabi.h"
#include "engine/cq.h"

struct urxe_vcq {
	struct pabi_cq v;
	struct urxe_cq cq;
	uint64_t tag; /* of its events */
	struct urxe_cqe current; /* of start_poll ... end_poll */
	struct urxe_pd *parent; /* parent domain it was made in, or NULL */
};

static inline struct urxe_vcq *to_vcq(struct ibv_cq *cq)
{
	return container_of(cq, struct urxe_vcq, v.cq);
}

static inline struct urxe_cq *to_ucq(struct ibv_cq *cq)
{
	return &to_vcq(cq)->cq;
}

/* Return whether the program left @cq->handle as it was. */
static inline bool cq_is_named(struct ibv_cq *cq)
{
	return cq->handle == to_ucq(cq)->index;
}

/* How an interposer's polls of extended CQs continue. */
struct cq_ex_polls {
	int (*_Atomic start)(struct ibv_cq_ex *cq,
			     struct ibv_poll_cq_attr *attr);
	int (*_Atomic next)(struct ibv_cq_ex *cq);
};

/*
 * Have an interposer's @start and @next poll @cq, and keep in @was the
 * functions that they replace.  These are the same for all CQs; a CQ that has
 * others is left alone, because an inner interposer had no memory for it.
 */
static inline void cq_ex_polls_replace(
	struct ibv_cq_ex *cq, struct cq_ex_polls *was,
	int (*start)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr),
	int (*next)(struct ibv_cq_ex *cq))
{
	if (!load_acquire(&was->start)) {
		store_relaxed(&was->next, cq->next_poll);
		store_release(&was->start, cq->start_poll);
	}
	if (cq->start_poll != load_relaxed(&was->start))
		return;
	cq->next_poll = next;
	cq->start_poll = start;
}

/* What was not asked for cannot be read (man ibv_create_cq_ex). */
void cq_ex_set_calls(struct ibv_cq_ex *cq, uint64_t wc_flags);
