/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requester of a QP whose other end is on another host: a carrier
 * (engine/flight.h) that makes packets of WRs, and completes them when they are
 * answered.
 */
#pragma once

#include "engine/flight.h"
#include "engine/qp.h"

struct wire_requester;

/* For qp, whose entry in arena.wire[] is there; NULL: no memory. */
struct wire_requester *requester_new(const struct urxe_qp *qp);
void requester_free(struct wire_requester *r);

/*
 * Its WRs go that way from now on, or again the way they went before; qp->lock
 * is held and its queue is empty.
 */
void requester_attach(struct urxe_qp *qp, struct wire_requester *r);
struct wire_requester *requester_detach(struct urxe_qp *qp);

/* datagram.c: those of a new UD QP that are for other hosts go there; unless it
 * has another carrier. */
void datagram_attach(struct urxe_qp *qp);
