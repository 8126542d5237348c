// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Budget for READ data, see budget.h. */
#include "base/clock.h"
#include "budget.h"
#include "engine/core/process.h"
#include "state.h"

/* A peer that has not responded for this time is silent, ns. */
#define BUDGET_SILENCE 1000000000

static uint32_t budget_of(const struct wire_requester *r)
{
	/* socket_bytes is not known before the first request */
	return r->socket_bytes && r->socket_bytes < BUDGET_BYTES ?
		       r->socket_bytes :
		       BUDGET_BYTES;
}

/* Return whether this is a turn, and not used yet. */
static bool has_turn(const struct urxe_qp *qp, const struct wire_requester *r)
{
	return r->in_progress && r->served != load_relaxed(&qp->scq->sweep);
}

/* Return whether what r counts is the parent's: budget_after_fork(). */
static bool is_parents(const struct wire_requester *r)
{
	return unlikely(r->pid != urxe_pid);
}

static void budget_wait(struct wire_requester *r, bool waits)
{
	if (waits && !r->waits_room)
		fetch_add_relaxed(&r->ctx->read_waiting, 1);
	else if (!waits && r->waits_room && !is_parents(r))
		fetch_sub_relaxed(&r->ctx->read_waiting, 1);
	r->waits_room = waits;
}

bool budget_has_room(struct urxe_qp *qp, struct wire_requester *r,
		     uint32_t bytes)
{
	struct urxe_context *ctx = r->ctx;
	const uint64_t out = load_relaxed(&ctx->read_bytes);
	const uint32_t others =
		load_relaxed(&ctx->read_waiting) - r->waits_room;
	const bool room = !out || out + bytes <= budget_of(r);

	if ((room && !others) || r->retransmits)
		return true;
	if (has_turn(qp, r)) {
		if (room && !load_relaxed(&qp->scq->waits_turn))
			return true;
		store_relaxed(&qp->waits_turn, true);
	}
	budget_wait(r, true);
	r->refused = true;
	return false;
}

/* Release what is charged for a silent peer. */
static void budget_check_silence(struct wire_requester *r, uint64_t now)
{
	if (r->answered != r->window.una) {
		r->answered = r->window.una;
		r->answered_at = now;
		r->silent = false;
	} else if (r->charged &&
		   (int64_t)(now - r->answered_at) >= BUDGET_SILENCE) {
		budget_release(r, r->charged);
		r->silent = true;
	}
}

void budget_begin_turn(struct urxe_qp *qp, struct wire_requester *r,
		       uint64_t now)
{
	budget_check_silence(r, now);
	store_relaxed(&qp->waits_turn, false);
	r->in_progress = true;
	budget_begin_send(r);
}

void budget_begin_send(struct wire_requester *r)
{
	r->refused = false;
}

void budget_end_send(struct urxe_qp *qp, struct wire_requester *r)
{
	budget_wait(r, r->refused);
	if (!r->refused)
		store_relaxed(&qp->waits_turn, false);
	r->in_progress = false;
}

void budget_charge(const struct urxe_qp *qp, struct wire_requester *r,
		   uint32_t bytes)
{
	if (!bytes)
		return;
	if (r->in_progress)
		r->served = load_relaxed(&qp->scq->sweep);
	if (r->silent)
		return;
	if (!r->charged) {
		r->answered = r->window.una;
		r->answered_at = clock_now();
	}
	r->charged += bytes;
	fetch_add_relaxed(&r->ctx->read_bytes, bytes);
}

void budget_release(struct wire_requester *r, uint64_t bytes)
{
	if (bytes > r->charged) /* released since the peer was silent */
		bytes = r->charged;
	if (!bytes)
		return;
	r->charged -= bytes;
	if (!is_parents(r))
		fetch_sub_relaxed(&r->ctx->read_bytes, bytes);
}

void budget_leave(struct wire_requester *r)
{
	budget_wait(r, false);
	budget_release(r, r->charged);
	r->silent = false;
}

void budget_after_fork(struct urxe_context *ctx)
{
	store_relaxed(&ctx->read_bytes, 0);
	store_relaxed(&ctx->read_waiting, 0);
}
