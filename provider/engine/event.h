/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events: records of 8 bytes (completion channel: the CQ's address in its
 * process) and 16 bytes (async: element, type) in the FIFOs that core reads.
 */
#ifndef URXE_EVENT_H
#define URXE_EVENT_H

#include <infiniband/verbs.h>

#include "context.h"
#include "peer.h"

/* Write end of FIFO number - 1 of peer's context; -1 if nobody reads it. */
int event_open(struct urxe_peer *peer, uint32_t number);

/*
 * An event of a CQ to its channel.  False if the FIFO is full and the event
 * must be sent again later.
 */
bool event_send_comp(int fd, struct urxe_cq_sh *sh);
/* Events that did not fit into their channel, now that one was read. */
void event_resend(struct urxe_context *ctx);

/* Raise an async event of a QP, SRQ or CQ in peer's context. */
void event_raise_qp(struct urxe_peer *peer, struct urxe_qp_sh *sh,
		    enum ibv_event_type type);
void event_raise_srq(struct urxe_peer *peer, struct urxe_srq_sh *sh,
		     enum ibv_event_type type);
void event_raise_cq(struct urxe_peer *peer, struct urxe_cq_sh *sh,
		    enum ibv_event_type type);

#endif
