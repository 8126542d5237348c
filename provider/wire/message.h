/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which packets a WR is: IB 9.4.  A message of n packets of the path's MTU; one
 * that is answered with data has one packet, a request, and its answer has n.
 */
#pragma once

#include "engine/qp.h"
#include "wire/packet.h"

/* How many PSNs it takes. */
uint32_t message_packets(const struct urxe_qp *qp, const struct urxe_wqe *w);

/* Is it answered by more than an ACK? */
bool message_fetches(const struct urxe_wqe *w);

/*
 * Packet i of n; of what fetches, a request for packets i to i + more - 1 of
 * its answer.  Its payload is p->length bytes from i << mtu_shift on, which are
 * for the caller to bring; PSN and AckReq are, too.
 */
void message_packet(const struct urxe_qp *qp, const struct urxe_wqe *w,
		    uint32_t i, uint32_t n, uint32_t more,
		    struct wire_packet *p);

/* The way of a connected QP's packets, and of a datagram. */
void message_path(const struct urxe_qp *qp, struct wire_path *path);
