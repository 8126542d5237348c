/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion queues as libibverbs sees them. */
#pragma once

#include "abi/pabi/pabi.h"
#include "engine/cq/cq.h"

struct urxe_vcq {
	struct pabi_cq v;
	struct urxe_cq cq;
	uint64_t tag; /* of its events; shared/event_tag.h */
	struct urxe_cqe current; /* between start_poll and end_poll */
	struct urxe_pd *parent; /* its parent domain, or NULL */
};

static inline struct urxe_vcq *to_vcq(struct ibv_cq *cq)
{
	return container_of(cq, struct urxe_vcq, v.cq);
}

static inline struct urxe_cq *to_ucq(struct ibv_cq *cq)
{
	return &to_vcq(cq)->cq;
}

/* Return whether @cq->handle, which the program can write, is unchanged. */
static inline bool cq_is_named(struct ibv_cq *cq)
{
	return cq->handle == to_ucq(cq)->index;
}

/* The poll functions of extended CQs that an interposer has replaced. */
struct cq_ex_polls {
	int (*_Atomic start)(struct ibv_cq_ex *cq,
			     struct ibv_poll_cq_attr *attr);
	int (*_Atomic next)(struct ibv_cq_ex *cq);
};

/*
 * Install an interposer's @start and @next in @cq, and store the functions
 * that they replace in @was, which serves all CQs.
 *
 * The first CQ determines the content of @was.  A CQ with other functions is
 * not changed: an inner interposer had no memory for it and did not install
 * its own.
 *
 * The release store of was->start publishes was->next.
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

/*
 * Set the poll functions of @cq, and the read functions that @wc_flags
 * requests.  The other read functions stay NULL (ibv_create_cq_ex(3)).
 */
void cq_ex_set_calls(struct ibv_cq_ex *cq, uint64_t wc_flags);
