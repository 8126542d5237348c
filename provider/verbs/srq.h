/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues as libibverbs sees them. */
#pragma once

#include "abi/pabi/pabi.h"
#include "engine/qp/srq.h"

struct urxe_vsrq {
	struct pabi_srq v;
	struct urxe_srq srq;
	uint64_t tag; /* of its events; shared/event_tag.h */
	struct urxe_pd *pd;
	struct urxe_xrcd *xrcd; /* XRC: its domain, else NULL */
};

static inline struct urxe_vsrq *to_vsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct urxe_vsrq, v.srq);
}

static inline struct urxe_srq *to_usrq(struct ibv_srq *srq)
{
	return &to_vsrq(srq)->srq;
}

/* Return whether @srq->handle, which the program can write, is unchanged. */
static inline bool srq_is_named(struct ibv_srq *srq)
{
	return srq->handle == to_usrq(srq)->index;
}
