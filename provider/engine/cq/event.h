/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events: records of 8 bytes (completion channel: the CQ's tag) and 16 bytes
 * (async: element, type) in FIFOs that libibverbs reads; shared/event_tag.h.
 *
 * The process that raises an event writes it into the FIFO of the target
 * context.  If this fails, because the FIFO is full or the process has no
 * free descriptor, the event is kept in the arena of the target context: with
 * its CQ (pending_events) or in a table (kept).  The owner of that context
 * writes it later (event_resend()): in its service thread, which each process
 * has that armed a CQ, or when it fetches an event or polls.  An async event
 * is lost, and logged, only if the table is full as well (URXE_KEPT_EVENTS).
 */
#pragma once

#include <infiniband/verbs.h>

#include "engine/core/context.h"
#include "engine/mem/peer.h"

struct urxe_cq_view;

/* Send a completion event of a CQ to its channel, or keep it. */
void event_send_comp(struct urxe_cq_view *v);

/*
 * Raise an async event in peer's context, or keep it.  fifo: its number + 1,
 * 0 for none; element: the tag of the object.
 */
void event_send_async(struct urxe_peer *peer, uint32_t fifo, uint64_t element,
		      enum ibv_event_type type);
/* The same for a CQ, a QP or an SRQ; sh is its shared part. */
#define event_raise(peer, sh, type) \
	event_send_async(peer, (sh)->async_fifo, (sh)->tag, type)

/*
 * Delay the async events of ctx: all of them are kept first.  late() returns
 * the delay in ns for all events that are kept together.  Needs the service
 * thread; false if it cannot be created.
 *
 * The order of events is preserved as long as the table has room.  Equal
 * events of an object that are kept together are merged.  Port events are
 * delayed as well.
 */
bool event_delay_async(struct urxe_context *ctx,
		       uint64_t (*late)(struct urxe_context *ctx));

/*
 * Write the events that were kept in ctx.  Returns when to call this again, a
 * time of clock_now(), or UINT64_MAX.
 */
uint64_t event_resend(struct urxe_context *ctx);
/* Drop the kept async events of an object that is destroyed. */
void event_drop(struct urxe_context *ctx, uint64_t element);
