/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fast path of ibv_post_send for RDMA WRITE, READ, atomics and SEND on RC
 * QPs.
 *
 * If the send queue is idle, and the data of a WR is mapped in this process
 * at both ends, the WR completes before ibv_post_send returns.  Its WQE would
 * never be read.  So no WQE is written: the positions of the queue advance,
 * and the CQE, if there is one, is built from the ibv_send_wr.
 *
 * A pass is a part of the list that is executed while the guard is raised
 * once.  All its WRs are of one kind (WRITEs, READs, atomics or SENDs), and
 * those that name an rkey name the same one.  The connection, the PSN and the
 * rkey are checked once for a pass, the states of both ends at each WR, as
 * the requester does (requester.c).
 *
 * READs and atomics use the fast path only if the responder has resources for
 * all that may be outstanding.  A SEND uses it if the next receive is in the
 * responder QP's own RQ, has one SGE that is large enough, and is mapped in
 * this process or private to another one, so that the completion can carry the
 * data (eager.h).
 *
 * At the first WR that fails any check, the rest of the list is left to the
 * requester.  So errors are handled in the requester only.  The checks are the
 * requester's, or their cached results: those of the connection are made by
 * conn_check_path() (urxe_conn.path and allows), those of a key by mem_entry()
 * (region.h), that of the responder's resources by part_has_resources().  CQEs
 * are filled by complete_fill() and responder_fill().
 */
#pragma once

#include "engine/qp/qp.h"

/*
 * Execute WRs from the head of a list.  Returns the first WR that has to be
 * posted to the send queue, or NULL.  qp->lock is held, and the QP was in
 * RTS.
 */
struct ibv_send_wr *direct_post(struct urxe_qp *qp, struct ibv_send_wr *wr);
/*
 * The same for WRs that ibv_wr_* calls have built in the queue, from slot
 * first up to sq.prod, and that have not been begun.  The rest stays queued.
 */
void direct_run(struct urxe_qp *qp, uint32_t first);
/*
 * In the child of a fork: drop the cached regions and rings, and complete a
 * pass that another thread was executing at the time of the fork.
 */
void direct_after_fork(struct urxe_qp *qp);
