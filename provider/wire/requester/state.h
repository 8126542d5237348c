/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Private state of a wire requester, shared by its parts:
 *
 *	roce_requester.c	the transport: begins WRs, checks timers
 *	send.c			builds and sends packets
 *	fetch.c			outstanding fetches
 *	answer.c		processes responses, retransmits
 *	completer.c		the same in the thread that has received them
 *
 * All functions are called with qp->lock held, by a poster, a poller, the
 * service thread or the socket owner's.  The requester state is not in shared
 * memory, except for its inbox.
 */
#pragma once

#include "engine/qp/wqe.h"
#include "wire/socket/count.h"
#include "wire/socket/inbox.h"
#include "budget.h"
#include "early.h"
#include "roce_requester.h"
#include "rtt.h"
#include "window.h"

#define FETCHES_MAX URXE_MAX_RD_ATOM
#define PROBES 3u

/*
 * PSNs of the WR in a send-queue slot.  A WR with 0 packets is executed, or
 * fails, locally.
 */
struct message {
	uint32_t psn, packets;
	uint32_t fetch; /* of a fetch: response packets of one request */
};

/* An outstanding request whose response carries data. */
struct fetch {
	uint32_t psn, packets;
	uint32_t bytes; /* charged for it: budget.h */
};

struct wire_requester {
	const struct urxe_transport *before; /* the QP's previous transport */
	struct urxe_context *ctx;
	struct urxe_wire_inbox *inbox;
	int32_t pid; /* process that began the WRs in flight */
	uint32_t mask;
	struct wire_window window;
	uint32_t at; /* slot that window.next is in */
	uint32_t end; /* one past the last slot that was begun */
	/* outstanding fetches, a ring from first on */
	struct fetch fetch[FETCHES_MAX];
	uint32_t first, fetches;
	uint64_t fetched; /* bytes that their responses carry */
	uint64_t charged; /* the part of them that counts in the budget */
	uint32_t served; /* the sweep in which a request last was charged */
	bool in_progress; /* this is progress() */
	/*
	 * una when it last advanced, or when `charged` was 0, and the time;
	 * silent: charged requests had no response for long, ns
	 */
	uint32_t answered;
	uint64_t answered_at;
	bool silent;
	bool waits_room; /* is counted in ctx->read_waiting ... */
	bool refused; /* ... and found no room since budget_begin_send() */
	struct early early; /* responses behind one that is missing */
	/*
	 * The gaps between them, up to gaps_end, are requested again, those
	 * before `gap` already (has_gaps).  gaps_asked: una is before
	 * gaps_end.
	 */
	uint32_t gap, gaps_end; /* PSNs */
	bool has_gaps, gaps_asked;
	/*
	 * Behind a missing response: all PSNs before `acked` are acknowledged
	 * (has_acked), and a NAK, to be processed when una reaches its PSN
	 * (has_nak).
	 */
	uint32_t acked;
	bool has_acked, has_nak;
	struct urxe_wire_answer nak;
	uint32_t socket_bytes; /* that the socket's buffer takes */
	uint64_t deadline; /* retransmission timer; 0: not running */
	uint64_t probe_at; /* next probe (requester_probe); 0: none */
	struct wire_rtt rtt;
	uint64_t repeated_at; /* when the recovery repeated packets last */
	uint64_t rnr_until; /* end of the RNR wait; 0: none */
	int unsent; /* the error if packets could not be sent, -errno or 0 */
	uint64_t paced_until; /* UC: no packet is sent before; 0: none */
	uint8_t left, rnr_left; /* retries left */
	uint8_t probes; /* sent since una advanced */
	bool waits; /* the wait is shown in qp->sh->wait */
	bool gone_back; /* already retransmitted for this una */
	uint32_t retransmits; /* retransmissions since una advanced */
	/* local error during sending, or IBV_WC_SUCCESS */
	enum ibv_wc_status failed;
	/* slot of the WR that failed; nothing more of it is sent */
	uint32_t failed_at;
	struct message message[]; /* indexed by slot & mask */
};

static inline struct message *message_at(struct wire_requester *r,
					 uint32_t slot)
{
	return &r->message[slot & r->mask];
}

static inline uint32_t message_end(struct wire_requester *r, uint32_t slot)
{
	const struct message *m = message_at(r, slot);

	return wire_psn_add(m->psn, m->packets);
}

/* Forget all outstanding fetches. */
static inline void fetch_forget(struct wire_requester *r)
{
	r->fetches = 0;
	r->fetched = 0;
	budget_release(r, r->charged);
	r->has_gaps = r->gaps_asked = r->has_nak = false;
	early_clear(&r->early);
}

static inline void counted(const struct urxe_qp *qp, enum urxe_counter which)
{
	count_request(qp->ctx->fabric, which);
}

static inline bool message_is_send(const struct urxe_wqe *w)
{
	return w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM ||
	       w->opcode == IBV_WR_SEND_WITH_INV;
}

/* fetch.c */

/*
 * Record that a request for `packets` packets of data from psn on was sent, and
 * charge that many bytes.
 */
void fetch_begin(const struct urxe_qp *qp, struct wire_requester *r,
		 uint32_t psn, uint32_t packets, uint32_t bytes);
/* The oldest fetch is complete. */
void fetch_end(const struct urxe_qp *qp, struct wire_requester *r);
/*
 * Request again what is missing: the gaps up to the last response that is
 * stored, or the rest of the oldest fetch.  Returns false if una is not in a
 * fetch.
 */
bool fetch_again(struct urxe_qp *qp, struct wire_requester *r);
/*
 * The same for the gaps behind those that were requested, once for each.
 * Returns false if all of those are filled.
 */
bool fetch_more_gaps(struct urxe_qp *qp, struct wire_requester *r);
/*
 * If nothing else is repeated, set the window to the next gap, if there is
 * one and max_rd_atomic permits another request.
 */
void fetch_next_gap(struct urxe_qp *qp, struct wire_requester *r);

/* send.c */

/* Return how many response packets one request for w may ask for. */
uint32_t fetch_most(const struct urxe_qp *qp, const struct wire_requester *r,
		    const struct urxe_wqe *w);
/*
 * Return true if there is something to send and the window has room for it.
 */
bool requester_may_send(struct urxe_qp *qp, struct wire_requester *r);
/*
 * Send what the window allows, or for UC, which has no responses, what the
 * pace of the port allows.  Called with the guard raised.
 */
void requester_send(struct urxe_qp *qp, struct wire_requester *r);
/* Advance r->at past the slots that are completely sent. */
void requester_skip_sent(struct wire_requester *r);
/* Return the retransmission timeout in ns; 0: infinite. */
uint64_t requester_timeout(const struct urxe_qp *qp,
			   const struct wire_requester *r);
/*
 * Start or stop the retransmission timer and that of the probes.  anew:
 * restart them if they are running.
 */
void requester_arm(const struct urxe_qp *qp, struct wire_requester *r,
		   bool anew);

/* answer.c.  Called with the guard not raised. */

/* Reset the retry counters, for a new oldest packet. */
void requester_tries_begin(const struct urxe_qp *qp, struct wire_requester *r);
/*
 * Retransmit from una after a loss.  If no retry is left, the oldest WR fails
 * with IBV_WC_RETRY_EXC_ERR and the QP enters the error state.
 */
void requester_retransmit(struct urxe_qp *qp, struct wire_requester *r);
/*
 * Retransmit before the timeout, since a round trip should be over: the last
 * packets before a pause, or their ACK, may be lost, which no NAK tells.  It
 * is not one of retry_cnt.  At most PROBES are sent; the last one goes back.
 */
void requester_probe(struct urxe_qp *qp, struct wire_requester *r);
/* Process all responses in the inbox. */
void requester_take(struct urxe_qp *qp, struct wire_requester *r);
/* Process one response. */
void requester_take_answer(struct urxe_qp *qp, struct wire_requester *r,
			   const struct inbox_answer *a);

/* roce_requester.c */

/*
 * Return true if the completer may process responses: the wire is qp's
 * transport, no other one is stacked on it, this process has begun the WRs in
 * flight, and no WR waits behind them, such as one with a fence.  It would
 * have to be begun, which is the work of the threads that poll.
 */
bool requester_is_plain(const struct urxe_qp *qp);
/* Send what has become possible, after requester_take_answer(). */
void requester_proceed(struct urxe_qp *qp);
