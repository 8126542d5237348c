/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The short way of an RDMA WRITE, READ or atomic, and of a small SEND.
 *
 * One that is posted to an idle send queue, and whose bytes are mapped here at
 * both ends, is over when ibv_post_send returns: nobody will ask what is in its
 * slot.  So none is written: the positions of the queue go on, and the
 * completion, if there is one, is made from the WR.  What a whole list has in
 * common, the guard, the connection, the PSN and the two keys, is looked at
 * once; the states of both ends at each WR, as the requester does
 * (requester.c).
 *
 * A pass is of one kind: WRITEs, READs, atomics or SENDs, and those that name a
 * key name the same one.  READs and atomics go this way where the responder has
 * resources for all that may be outstanding.
 *
 * A SEND takes the receive that is next, if that is the QP's own, has one SGE
 * and room enough, and is mapped here.
 *
 * Whatever is not plainly in order is left to the requester, from that WR on,
 * and so he alone knows the rules of errors.
 */
#pragma once

#include "qp.h"

/*
 * Carry out WRs from the head of a list; returns the first that is to be pushed
 * in the long way, or NULL.  qp->lock is held, and the QP was in RTS.
 */
struct ibv_send_wr *direct_post(struct urxe_qp *qp, struct ibv_send_wr *wr);
/*
 * The same with those that were built in the queue, from slot first on, and
 * that nobody has seen yet.  What it leaves is queued.
 */
void direct_run(struct urxe_qp *qp, uint32_t first);
/* May a QP that is connected ever go it?  Its counters were attached before. */
bool direct_suits(const struct urxe_qp *qp);
/* The connection is a new one: the keys that it knows mean other memory. */
void direct_forget(struct urxe_qp *qp);
/*
 * In the child of a fork, where they do, too; and another thread may have been
 * in the middle of a list.
 */
void direct_after_fork(struct urxe_qp *qp);
