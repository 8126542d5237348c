/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events: records of 8 bytes (completion channel: the CQ's tag) and 16 bytes
 * (async: element, type) in the FIFOs that core reads; shared/event_tag.h.
 *
 * Who raises one writes it into the other context's FIFO.  If he cannot,
 * because the FIFO is full or he has no descriptor left, the event is kept in
 * the other's arena, with its CQ (pending_events) or in a table (kept), and the
 * other writes it himself: his service thread, which everybody has who armed a
 * CQ, or the next time he fetches an event or polls.  No event is lost.
 */
#pragma once

#include <infiniband/verbs.h>

#include "context.h"
#include "peer.h"

struct urxe_cq_view;

/* An event of a CQ to its channel. */
void event_send_comp(struct urxe_cq_view *v);

/* Raise an async event in peer's context. */
void event_send_async(struct urxe_peer *peer, uint32_t fifo, uint64_t element,
		      enum ibv_event_type type);
/* Of a CQ, a QP or an SRQ. */
#define event_raise(peer, sh, type) \
	event_send_async(peer, (sh)->async_fifo, (sh)->tag, type)

/*
 * Have the async events of ctx's objects come late: late says by how many ns,
 * for as many as wait together.  Needs the service thread; false: there is none.
 * They stay in their order while there is room to keep them, and equal ones of
 * an object that wait together are one.  Those of the port, too, are late then.
 */
bool event_make_late(struct urxe_context *ctx,
		     uint64_t (*late)(struct urxe_context *ctx));

/*
 * Write the events that were kept in ctx.  Returns when to do so again, ns,
 * UINT64_MAX for never.
 */
uint64_t event_resend(struct urxe_context *ctx);
/* Drop those of an object that is no more. */
void event_drop(struct urxe_context *ctx, uint64_t element);
