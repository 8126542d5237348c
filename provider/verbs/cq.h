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

/* Return whether @cq->handle, to which the program can write, is its handle. */
static inline bool cq_is_named(struct ibv_cq *cq)
{
	return cq->handle == to_ucq(cq)->index;
}

/* What was not asked for cannot be read (man ibv_create_cq_ex). */
void cq_ex_set_calls(struct ibv_cq_ex *cq, uint64_t wc_flags);
