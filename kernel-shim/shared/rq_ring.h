/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Receive queues, in shared memory: a ring of slots, each a struct urxe_recv.
 *
 * prod is stored by the owner after it filled slots (release; seq_cst once
 * per post, because a parked requester looks the other way round).  A
 * requester reads the slot at cons and then takes it by compare-and-swap on
 * cons; it has copied all it needs before, so the slot may be posted anew as
 * soon as cons has passed it and its completion was polled.  Where there are
 * several requesters that may be while a slow one still reads it: then cons has
 * moved, and what he read counts for nothing.  So its words are atomic; relaxed is
 * enough, because whose compare-and-swap succeeds read what prod had published
 * (acquire), and reads nothing after it.  done follows
 * cons when the completion is published: between the two lies what a dying
 * requester took with it.
 *
 * SRQs, and the queues of UD QPs, have several requesters: receives that were
 * taken are completed in any order.  There done is not used.  Each receive has
 * a *ticket*, which comes back with its completion, and under that number the
 * owner keeps a copy, in its own memory, from posting to polling.  So the slot
 * may be posted anew while a slow requester is still at work, and what a dead
 * one took and did not complete can be posted again (rq_recover.c).
 *
 * An SRQ can be resized.  The new ring has copies of what is posted, under
 * the same positions, and its word is stored before anything new is posted:
 * a requester that loaded prod (acquire) and then finds the word it knows can
 * trust its slots up to there; else it looks again (rq_view_load).  The old
 * ring is freed after a quiesce().
 */
#pragma once

#include "layout.h"

/* A ring in one word: offset in the arena | log2(slots); 0: there is none. */
#define URXE_RQ_RING(offset, log) ((offset) | (log))
#define URXE_RQ_LOG(word) ((uint32_t)(word) & (URXE_LINE - 1))
#define URXE_RQ_OFFSET(word) ((word) & ~(uint64_t)(URXE_LINE - 1))
#define URXE_RQ_MAX_LOG 15
static_assert(URXE_MAX_SRQ_WR <= 1 << URXE_RQ_MAX_LOG &&
		      URXE_MAX_QP_WR <= 1 << URXE_RQ_MAX_LOG,
	      "a ring of every size that is allowed");

/* Bytes of a slot. */
static inline uint32_t rq_stride(uint32_t max_sge)
{
	uint32_t n = sizeof(struct urxe_recv) +
		     max_sge * sizeof(struct urxe_recv_sge);

	return n <= 32 ? 32 : (n + URXE_LINE - 1) / URXE_LINE * URXE_LINE;
}
