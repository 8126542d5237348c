/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion queues. */
#ifndef URXE_CQ_H
#define URXE_CQ_H

#include "engine/cq_ring.h"
#include "engine/urxe.h"

/* What a producer says of a completion. */
struct urxe_completion {
	uint64_t wr_id;
	uint32_t qpn;
	uint32_t byte_len;
	uint32_t imm; /* or vendor_err when status is not success */
	uint32_t src_qp;
	uint32_t wqe; /* the SQ or RQ slot it releases */
	uint8_t status, opcode, wc_flags;
	bool solicited;
};

/* An entry being filled: cq_begin ... cq_end. */
struct urxe_cqe_ref {
	struct urxe_cqe *cqe;
	uint32_t pos;
	struct urxe_cqe lost; /* a completion that the CQ has no room for */
};

/* View CQ index of peer's context.  False if there is no sound one. */
bool cq_view_init(struct urxe_cq_view *v, struct urxe_peer *peer,
		  uint32_t index, uint16_t owner);
void cq_view_fini(struct urxe_cq_view *v);

/* What completions are stamped with, and the device's raw clock: ns. */
uint64_t cq_clock(void);

/*
 * The caller's guard is up, from cq_begin to cq_end.
 *
 * Claim an entry; false when the CQ is overrun, which has then been reported
 * to its owner.
 */
bool cq_begin(struct urxe_cq_view *v, struct urxe_cqe_ref *ref);
/* Fill and publish it, with inline_len bytes already in cqe->data. */
void cq_end(struct urxe_cq_view *v, const struct urxe_cqe_ref *ref,
	    const struct urxe_completion *c, uint8_t inline_len);
/* Both at once. */
bool cq_complete(struct urxe_cq_view *v, const struct urxe_completion *c);

/* Fire the CQ's event if it is armed for this kind of completion. */
void cq_fire(struct urxe_cq_view *v, bool solicited);
/* Write end of its channel's FIFO, opened once; -1 if nobody reads it. */
int cq_event_fd(struct urxe_cq_view *v);
/* Tell a CQ's poller that one of its QPs changed state. */
void cq_attention(struct urxe_cq_view *v);

/* What ibv_create_cq and ibv_create_cq_ex ask for. */
struct cq_request {
	int cqe, vector;
	struct ibv_comp_channel *channel;
	uint32_t flags; /* URXE_CQ_* */
	bool single_threaded;
};
struct urxe_cq *cq_create(struct urxe_context *ctx, const struct cq_request *r);

/* Memory for a ring of cqe entries at least, and its word. */
int cq_ring_new(struct urxe_context *ctx, int cqe, uint64_t *word);
void cq_ring_free(struct urxe_context *ctx, uint64_t word);
/* Poll that ring from now on. */
void cq_use_ring(struct urxe_cq *cq, uint64_t word);

/* Be the one who polls or resizes: from here the gate may be entered. */
static inline void cq_lock(struct urxe_cq *cq)
{
	if (!cq->single_threaded)
		pthread_mutex_lock(&cq->lock);
}

static inline void cq_unlock(struct urxe_cq *cq)
{
	if (!cq->single_threaded)
		pthread_mutex_unlock(&cq->lock);
}

struct ibv_cq *urxe_create_cq(struct ibv_context *ctx, int cqe,
			      struct ibv_comp_channel *channel, int vector);
int urxe_destroy_cq(struct ibv_cq *cq);
int urxe_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void urxe_cq_event(struct ibv_cq *cq);
int urxe_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);

#endif
