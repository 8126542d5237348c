/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared receive queues: a receive ring (rq.h, shared/rq_ring.h) from which
 * the requesters of many QPs, in many processes, take receives.
 */
#pragma once

#include "engine/cq/cq.h"
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
	uint32_t pd; /* PD handle */
	struct urxe_cq *cq; /* XRC, else NULL */
	uint32_t xrcd; /* XRC: its index + 1, else 0 */
	uint32_t async_fifo; /* number + 1, 0: none */
	uint64_t tag; /* of its events: shared/event_tag.h */
};

/* Create an SRQ of ctx in srq, which is zeroed.  0 or -errno. */
int srq_open(struct urxe_srq *srq, struct urxe_context *ctx,
	     const struct srq_params *p);
/*
 * Destroy an SRQ in two steps.  srq_unlink() returns false if QPs use it.
 * Otherwise it removes the SRQ from all look-ups.  The caller then waits
 * until the program has acknowledged its events, and calls srq_close().
 */
bool srq_unlink(struct urxe_srq *srq);
void srq_close(struct urxe_srq *srq);

/* ibv_post_srq_recv */
int srq_post_recv(struct urxe_srq *srq, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad);
/* Wake the service threads of requesters that are parked for a receive. */
void srq_wake_waiters(struct urxe_srq *srq);
