/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Budget for READ data: the QPs of a context together request at most
 * BUDGET_BYTES at a time, twice what one QP may.  More is not faster, but lost:
 * all responses arrive at the socket of the fabric, whose buffer is limited,
 * and a peer that needs longer than `timeout` gets all requests again.
 *
 *	charge		a request is sent: its bytes are outstanding
 *	release		the responses have arrived, or the request is dropped
 *
 * A QP that finds no room waits for its turn, and so does each QP that wants to
 * request data meanwhile.  The pollers and the service thread call progress()
 * of the QPs of a CQ in a ring that begins with the first one that waits
 * (engine/exec/retry.c).  Each call is a turn, good for one request, unless a
 * QP before it in the ring waits.
 *
 * A retransmission stays charged, and does not wait.  A silent peer does not
 * stop the others: what is charged is released when it has not responded for
 * BUDGET_SILENCE, and nothing is charged until it responds.  In the child of a
 * fork nothing is charged.
 *
 * The state is in struct urxe_context.  All accesses are relaxed: no data
 * depends on it, and several threads may exceed the budget by a request each.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct urxe_context;
struct urxe_qp;
struct wire_requester;

#define BUDGET_BYTES (1536u << 10)

/*
 * Return whether the QP may request that many bytes now.  If not, it waits for
 * its turn.
 */
bool budget_has_room(struct urxe_qp *qp, struct wire_requester *r,
		     uint32_t bytes);
void budget_charge(const struct urxe_qp *qp, struct wire_requester *r,
		   uint32_t bytes);
void budget_release(struct wire_requester *r, uint64_t bytes);

/*
 * Called before and after what has become possible is sent: the QP does not
 * wait any more if it finds room for all of it, or has nothing to send.
 * progress() begins with budget_begin_turn().
 */
void budget_begin_turn(struct urxe_qp *qp, struct wire_requester *r,
		       uint64_t now);
void budget_begin_send(struct wire_requester *r);
void budget_end_send(struct urxe_qp *qp, struct wire_requester *r);
/* The QP has nothing to request any more, and nothing outstanding. */
void budget_leave(struct wire_requester *r);
/* In the child of a fork */
void budget_after_fork(struct urxe_context *ctx);
