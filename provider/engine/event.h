/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events: records of 8 bytes (completion channel: the CQ's tag) and 16 bytes
 * (async: element, type) in the FIFOs that core reads; shared/event_tag.h.
 */
#pragma once

#include <infiniband/verbs.h>

#include "context.h"
#include "peer.h"

/*
 * An event of a CQ to its channel.  False if the FIFO is full and the event
 * must be sent again later.
 */
bool event_send_comp(int fd, struct urxe_cq_sh *sh);
/* Events that did not fit into their channel, now that one was read. */
void event_resend(struct urxe_context *ctx);

/* Raise an async event in peer's context. */
void event_send_async(struct urxe_peer *peer, uint32_t fifo, uint64_t element,
		      enum ibv_event_type type);
/* Of a CQ, a QP or an SRQ. */
#define event_raise(peer, sh, type) \
	event_send_async(peer, (sh)->async_fifo, (sh)->tag, type)
