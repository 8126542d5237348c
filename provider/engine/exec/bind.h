/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory windows of types 1 and 2B: bind and invalidate work requests.
 *
 * A window is an entry of the key table.  While it is bound the entry
 * describes the memory itself, so that a requester needs one look-up only.
 * Entries are bound and unbound under the arena lock, which also orders this
 * against deregistration of the MR (key.c).  Requesters that read an entry
 * take no lock: it changes only while its live word is 0 and no guard names
 * it (shared/guard.h).
 *
 * bind_execute() and bind_invalidate() wait until no requester uses the
 * window.  The caller holds qp->lock and has raised qp's guard.  Both
 * functions lower the guard while they wait: the caller must repeat its
 * look-ups afterwards.
 */
#pragma once

#include "engine/qp/qp.h"

/*
 * IBV_ACCESS_LOCAL_WRITE is accepted, as hardware does.  It has no effect, as
 * a window has no lkey.
 */
#define MW_ACCESS                                             \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED |     \
	 IBV_ACCESS_LOCAL_WRITE)

/* Execute IBV_WR_BIND_MW; false means IBV_WC_MW_BIND_ERR. */
bool bind_execute(struct urxe_qp *qp, const struct urxe_wqe *w);
/*
 * Execute IBV_WR_LOCAL_INV: wait without a limit for requesters that use the
 * window.  False: there is no such window, or the arena lock failed.
 */
bool bind_invalidate_local(struct urxe_qp *qp, uint32_t rkey);

/*
 * Execute the responder's part of IBV_WR_SEND_WITH_INV: invalidate the type 2
 * window rkey of context p for QP qpn of PD pd there.
 * URXE_INV_FAILED: there is no such window, or the arena lock failed.
 * URXE_INV_BUSY: a requester, which may be stopped, still uses the window
 * after BOUNCE_TIMEOUT_NS, or the lock's holder is stopped.  The window is as
 * it was, and the caller retries with again, which waits QUIESCE_TRY_NS.
 */
enum urxe_inv bind_invalidate(struct urxe_qp *qp, struct urxe_peer *p,
			      uint32_t qpn, uint32_t pd, uint32_t rkey,
			      bool again);

/*
 * Invalidate window k, wait until no requester uses it, and unbind it, unless
 * another thread has bound or invalidated it during the wait.
 *
 * The caller holds the arena lock.  It is released during the wait, so the
 * caller must repeat its checks.  Returns 0 with the lock held, or -errno
 * without it.  -EAGAIN: *patience ended while the window was still in
 * use, and it is as it was; NULL waits without a limit.
 */
int bind_undo(struct urxe_fabric *f, struct urxe_arena *a, struct urxe_key *k,
	      struct patience *patience);
