/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Execution of a work request in parts, for transports (flight.h) that model
 * packets: the work of execute(), spread over time.
 *
 *	part_check()	first, as for the first packet
 *	part_move()	copy some bytes; each byte once, or any number of
 *			times for a READ
 *	part_finish()	the rest, after all bytes have been copied
 *
 * RDMA READ and WRITE can be divided.  A SEND can be divided if only this QP
 * can take the receive.  Its bytes may be written early, because the contents
 * of a receive buffer are undefined until completion; part_finish() then
 * sends the whole message once more.
 *
 * The caller holds qp->lock and has qp's guard raised.
 */
#pragma once

#include "execute.h"

/*
 * Check whether the responder would serve w.  RESP_ACK: it would, and the
 * bytes can be copied in parts.  RESP_OTHER: unknown, or w cannot be divided.
 * Otherwise the response, which execute() would return as well.  fetches: if
 * w is a READ or an atomic, the number outstanding at once (struct run).
 */
enum response part_check(struct urxe_qp *qp, const struct urxe_wqe *w,
			 uint32_t fetches);

/* Do the requester's checks of datagram w pass? */
bool part_check_datagram(struct urxe_qp *qp, const struct urxe_wqe *w);

/*
 * Copy bytes [off, off + len) of w.  All keys are checked again.  RESP_OTHER:
 * an lkey of the requester is not valid, or w cannot be divided.
 */
enum response part_move(struct urxe_qp *qp, const struct urxe_wqe *w,
			uint64_t off, uint64_t len);

/* Execute what is left of w. */
enum verdict part_finish(struct urxe_qp *qp, struct run *r, struct urxe_wqe *w);

/* Copy all bytes that w sends to buf; false if they cannot be read. */
bool part_copy(struct urxe_qp *qp, const struct urxe_wqe *w, char *buf);

/* Set the destination of READ w to byte, where it is mapped here. */
void part_fill(struct urxe_qp *qp, const struct urxe_wqe *w, uint8_t byte);

/*
 * Remove the first off bytes from a list of segments, in place; it has at
 * least as many.  Returns the first segment that is left.
 */
struct urxe_seg *part_skip(struct urxe_seg *seg, uint64_t off);
