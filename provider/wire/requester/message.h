/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segmentation of WRs into packets (IB 9.4).  A message has n packets of the
 * path MTU.  A WR whose response carries data has one request packet; its
 * response has n packets.  The requester calls these functions under the QP's
 * lock.
 */
#pragma once

#include "engine/qp/qp.h"
#include "wire/packet.h"

/* Return the number of PSNs that WR w uses. */
uint32_t message_packets(const struct urxe_qp *qp, const struct urxe_wqe *w);

/* Return true if the response to w is more than an ACK. */
bool message_fetches(const struct urxe_wqe *w);

/*
 * Build packet i of n in *p.  For a WR that fetches, build the request for
 * packets i to i + more - 1 of its response.  The payload is p->length bytes
 * from offset i << mtu_shift.  The caller sets the payload, the PSN and
 * AckReq.
 */
void message_packet(const struct urxe_qp *qp, const struct urxe_wqe *w,
		    uint32_t i, uint32_t n, uint32_t more,
		    struct wire_packet *p);

/*
 * Note the reason why packets for QP @dest with up to @bytes of payload could
 * not be sent from address @own: @err is -errno.
 */
void message_note_unsent(uint32_t dest, uint32_t bytes, const uint8_t own[16],
			 int err) __attribute__((cold));

/* Fill *path with the path of a connected QP. */
void message_path(const struct urxe_qp *qp, struct wire_path *path);
