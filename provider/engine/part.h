/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Carrying out a work request in parts, for carriers (flight.h): what execute()
 * does at once, with time between.
 *
 *	part_check()	first, as the first packet would find it
 *	part_move()	some of its bytes, each once; a READ's as often as one likes
 *	part_finish()	what is left when all of them are there
 *
 * An RDMA READ or WRITE can be divided, and the bytes of a SEND into a receive
 * that only this QP can take: those may be there early, because what is in a
 * receive is not defined before it completes, and part_finish() sends the whole.
 *
 * qp->lock is held and its guard is up.
 */
#pragma once

#include "execute.h"

/*
 * Would w be served?  RESP_ACK: yes, and its bytes can be moved in pieces.
 * RESP_OTHER: no telling, or it cannot be divided; any other: not now, or there
 * is something wrong, which execute() finds, too.  fetches: those at once, if
 * it is one (struct run).
 */
enum response part_check(struct urxe_qp *qp, const struct urxe_wqe *w,
			 uint32_t fetches);

/* Would datagram w go out, or is something wrong with it? */
bool part_check_datagram(struct urxe_qp *qp, const struct urxe_wqe *w);

/*
 * Bytes [off, off + len) of w's.  RESP_OTHER: a key of this side does not hold
 * any more.
 */
enum response part_move(struct urxe_qp *qp, const struct urxe_wqe *w,
			uint64_t off, uint64_t len);

enum verdict part_finish(struct urxe_qp *qp, struct run *r, struct urxe_wqe *w);

/* What w sends as it is now, all of it, to buf.  False: it cannot be read. */
bool part_copy(struct urxe_qp *qp, const struct urxe_wqe *w, char *buf);

/* Set what READ w will write, as far as it is mapped here. */
void part_fill(struct urxe_qp *qp, const struct urxe_wqe *w, uint8_t byte);

/* A list of runs without its first off bytes; it has so many. */
struct urxe_seg *part_skip(struct urxe_seg *seg, uint64_t off);
