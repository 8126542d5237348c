/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The receive queue of a QP or SRQ in shared memory: a ring of slots, each a
 * struct urxe_recv.  Its owner is the producer, under the lock of the queue.
 * Requesters are the consumers.  Indices (struct urxe_rq_sh) count up without
 * limit:
 *
 *	prod	stored by the owner after it has filled slots: release, and
 *		seq_cst once per post, because a parking requester stores
 *		waiter and then loads prod (Dekker)
 *	cons	a requester copies the slot at cons and then takes it by a
 *		compare-and-swap of cons (acq_rel).  If it then finds no free
 *		CQE, it may move cons back (responder_take_next())
 *	done	follows cons when the completion has been published.  What is
 *		between done and cons was taken by a requester that has not
 *		completed it, or died
 *
 * A slot may be filled again as soon as cons has passed it and its completion
 * was polled.  If there are several requesters, a slow one may still read the
 * slot then.  In that case cons has moved, its compare-and-swap fails, and it
 * discards what it read.  Therefore all words of a slot are atomic.  Relaxed
 * is enough: a requester whose compare-and-swap succeeds has read what prod
 * published (acquire), and reads nothing of the slot afterwards.
 *
 * SRQs and the queues of UD QPs have several requesters, so receives may
 * complete in any order and done is not used.  Each receive has a ticket, a
 * small number that its completion returns.  From posting to polling the
 * owner keeps a copy of the receive under that number, in its own memory.  So
 * a slot may be filled again before an earlier receive from it has completed,
 * and a receive that a dead requester took and did not complete can be posted
 * again (engine/qp/rq_recover.c).
 *
 * Resize of an SRQ.  The new ring has copies of the posted receives at the
 * same positions.  Its word is stored (seq_cst) before anything new is
 * posted.  A requester loads prod (acquire) and then ring (seq_cst).  If ring
 * is the word that it knows, the slots up to prod are valid there; otherwise
 * it maps the new ring (rq_view_load()).  The old ring is freed after
 * quiesce_srq().
 *
 * tests/model/srq_tickets.pml checks the tickets, tests/model/orders.cpp
 * ("rq_resize", "receives") the memory orders.
 */
#pragma once

#include "layout.h"

/* A ring in one word: offset in the arena | log2(slots); 0: no ring. */
#define URXE_RQ_RING(offset, log) ((offset) | (log))
#define URXE_RQ_LOG(word) ((uint32_t)(word) & (URXE_LINE - 1))
#define URXE_RQ_OFFSET(word) ((word) & ~(uint64_t)(URXE_LINE - 1))
#define URXE_RQ_MAX_LOG 15
static_assert(URXE_MAX_SRQ_WR <= 1 << URXE_RQ_MAX_LOG &&
		      URXE_MAX_QP_WR <= 1 << URXE_RQ_MAX_LOG,
	      "URXE_RQ_MAX_LOG is too small");

/* Return the size of a slot in bytes. */
static inline uint32_t rq_stride(uint32_t max_sge)
{
	uint32_t n = sizeof(struct urxe_recv) +
		     max_sge * sizeof(struct urxe_recv_sge);

	return n <= 32 ? 32 : (n + URXE_LINE - 1) / URXE_LINE * URXE_LINE;
}
