/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requester of a QP whose peer is on another host: a transport (struct
 * urxe_transport, engine/qp/flight.h) that segments WRs into packets and completes
 * them when responses arrive.
 */
#pragma once

#include "engine/qp/flight.h"
#include "engine/qp/qp.h"

struct wire_requester;

/*
 * Allocate a requester for qp, whose entry in arena.wire[] has memory.
 * Returns NULL if out of memory.
 */
struct wire_requester *requester_new(const struct urxe_qp *qp);
void requester_free(struct wire_requester *r);

/*
 * Install the wire as qp's transport, or restore the previous transport and
 * return the requester, which the caller frees.  qp->lock is held and the
 * send queue is empty.
 */
void requester_attach(struct urxe_qp *qp, struct wire_requester *r);
struct wire_requester *requester_detach(struct urxe_qp *qp);

/*
 * settle.c: the program is about to move a QP to ERR or RESET, or to destroy
 * it.  An RC QP acknowledges what it has received, and processes the responses
 * that have arrived.  qp->lock is not held.
 */
void settle(struct urxe_qp *qp);

/*
 * datagram.c: install the transport for datagrams to other hosts in a new UD
 * QP, unless it has another transport.
 */
void datagram_attach(struct urxe_qp *qp);
