/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Polling: the consumer's side of a completion queue (shared/cq_ring.h).  The
 * poller holds cq_lock() and is inside cq->gate; other threads of the process
 * that read the ring enter the gate as well.
 */
#pragma once

#include "engine/cq/cq_scan.h"
#include "engine/core/idle.h"
#include "engine/exec/retry.h"

/* Does a QP of cq need progress: a broken QP, a timer, or a transport? */
static inline bool poll_has_progress(const struct urxe_cq *cq)
{
	return load_relaxed(&cq->sh->attention) || load_relaxed(&cq->stalled);
}

/* Make progress on the QPs of cq, before polling. */
static inline void poll_progress(struct urxe_cq *cq)
{
	if (unlikely(poll_has_progress(cq)))
		retry_progress(cq);
}

/*
 * Interval, in empty polls, between checks of the claim of the entry at the
 * head.  Claims are in cache lines that producers write.
 */
#define POLL_CHECK_INTERVAL 64
static_assert(IDLE_POLLS % POLL_CHECK_INTERVAL == 0,
	      "IDLE_POLLS is a multiple");

/*
 * Interval, in empty polls that make progress on QPs, between looks for work
 * elsewhere (ctx->poller_waits).  Such polls take longer than others, for
 * which the interval is POLL_CHECK_INTERVAL.
 */
#define POLL_ELSEWHERE_INTERVAL 8u
static_assert(POLL_CHECK_INTERVAL % POLL_ELSEWHERE_INTERVAL == 0,
	      "POLL_CHECK_INTERVAL is a multiple");

/*
 * What is due at an empty poll: look for work elsewhere, request a check of
 * that claim, yield if the poller is idle (idle.h).
 */
void poll_waits(struct urxe_cq *cq, uint32_t empty);

/* Begin a poll.  A yield comes first, so that it does not delay a CQE. */
static inline void poll_begin(struct urxe_cq *cq)
{
	const uint32_t empty = load_relaxed(&cq->empty);

	if (unlikely(empty % POLL_ELSEWHERE_INTERVAL == 0))
		poll_waits(cq, empty);
	poll_progress(cq);
}

/*
 * Take the next completion: copy it, place its inline data, and release its
 * entry and the queue slots of its WR.  False if there is none.  The caller
 * is inside the gate.
 */
bool poll_take(struct urxe_cq *cq, struct urxe_cqe *copy);

/* vendor_err is the status, for requester and responder alike. */
static inline uint32_t poll_vendor_err(const struct urxe_cqe *e)
{
	return e->status;
}

/*
 * The sl field.  On Ethernet without a VLAN there is no service level.  By
 * annex A17.4.5.1 the completion of a datagram tells which header was received.
 * As there is no field for that, NICs report it in sl: 8 | 1 for IPv6 over UDP,
 * 8 | 2 for IPv4, 0 for RoCE v1.  UCX up to 1.18 depends on it.
 */
static inline uint8_t poll_sl(const struct urxe_cqe *e)
{
	if (e->wc_flags & URXE_CQE_IB)
		return e->sl;
	if (!(e->wc_flags & IBV_WC_GRH))
		return 0;
	if (e->wc_flags & URXE_CQE_ROCE_V1)
		return 0;
	return e->wc_flags & URXE_CQE_IPV4 ? 8 | 2 : 8 | 1;
}

/*
 * The fields that only datagrams over InfiniBand have.  They are 0 otherwise:
 * RoCE has no LIDs.
 */
static inline uint16_t poll_slid(const struct urxe_cqe *e)
{
	return e->wc_flags & URXE_CQE_IB ? e->slid : 0;
}

static inline uint8_t poll_path_bits(const struct urxe_cqe *e)
{
	return e->wc_flags & URXE_CQE_IB ? e->path_bits : 0;
}

/* Convert a CQE to a struct ibv_wc. */
static inline void poll_fill_wc(const struct urxe_cqe *e, struct ibv_wc *wc)
{
	wc->wr_id = e->wr_id;
	wc->status = e->status;
	wc->opcode = e->opcode;
	wc->vendor_err = poll_vendor_err(e);
	wc->byte_len = e->byte_len;
	wc->imm_data = e->imm;
	wc->qp_num = e->qpn;
	wc->src_qp = e->src_qp;
	wc->wc_flags = e->wc_flags & ~URXE_CQE_OWN_FLAGS;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
	if (e->wc_flags & (IBV_WC_GRH | URXE_CQE_IB)) {
		wc->slid = poll_slid(e);
		wc->sl = poll_sl(e);
		wc->dlid_path_bits = poll_path_bits(e);
	}
}

/*
 * Return the entry at the head of the ring if it is ready, else NULL.
 * Entries that dead producers have claimed are skipped.
 */
struct urxe_cqe *poll_ring(struct urxe_cq *cq);

/*
 * Place the inline data of an entry that is moved to the backlog, because the
 * data has to be copied from the arena.
 */
void poll_leaves_ring(struct urxe_cq *cq, struct urxe_cqe *e);

/*
 * Begin to destroy a CQ.  False if QPs or SRQs use it.  Otherwise this returns
 * the unpolled receives to their SRQs, and removes the CQ from all look-ups.
 * The caller then waits until the program has acknowledged its events, and
 * calls cq_close().
 */
bool poll_unlink(struct urxe_cq *cq);

/* ibv_poll_cq */
int poll_cq(struct urxe_cq *cq, int n, struct ibv_wc *wc);
