/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared receive queues: an RQ ring (shared/rq_ring.h) that the requesters of
 * many QPs, in many processes, take receives from.
 */
#pragma once

#include "cq.h"
#include "rq.h"

struct urxe_srq {
	struct urxe_context *ctx;
	struct urxe_srq_sh *sh;
	struct urxe_rq rq;
	uint32_t index;
	struct urxe_cq *cq; /* XRC, else NULL */
	unsigned int refs; /* QPs, under ctx->lock */
};

struct srq_params {
	uint32_t max_wr, max_sge, limit;
	uint32_t pd; /* its handle */
	struct urxe_cq *cq; /* XRC, else NULL */
	uint32_t xrcd; /* XRC: its index + 1, else 0 */
	uint32_t async_fifo; /* number + 1, 0: none */
	uint64_t tag; /* of its events: shared/event_tag.h */
};

/* Make srq, which is zeroed, an SRQ of ctx.  -errno */
int srq_open(struct urxe_srq *srq, struct urxe_context *ctx,
	     const struct srq_params *p);
/* False: QPs still use it.  After that nobody finds it any more ... */
bool srq_unlink(struct urxe_srq *srq);
/* ... and its events can be waited for, and it can be freed. */
void srq_close(struct urxe_srq *srq);

/* ibv_post_srq_recv */
int srq_post_recv(struct urxe_srq *srq, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad);
/* Requesters may be parked for want of a receive: have them look again. */
void srq_wake_waiters(struct urxe_srq *srq);
