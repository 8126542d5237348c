/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory windows, types 1 and 2B, as work requests bind and invalidate them.
 *
 * A window is an entry of the key table that, while it is bound, describes
 * the memory itself, so that a requester needs no second look-up.  Entries
 * are bound and unbound under the arena's lock, which also orders that with
 * the end of MRs (key.c); readers take no lock: an entry changes only while
 * its live word is 0 and nobody is inside.
 *
 * The two work request functions wait for requesters that are at the window.  They are called
 * with qp's guard up and put it down meanwhile: what the caller looked up
 * before must be looked up again.
 */
#pragma once

#include "qp.h"

/* IBV_ACCESS_LOCAL_WRITE is let pass, as devices do: windows have no lkey */
#define MW_ACCESS \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_LOCAL_WRITE)

/* IBV_WR_BIND_MW.  False: IBV_WC_MW_BIND_ERR. */
bool bind_execute(struct urxe_qp *qp, const struct urxe_wqe *w);
/*
 * IBV_WR_LOCAL_INV, and the responder's half of IBV_WR_SEND_WITH_INV: rkey of
 * context p, for QP qpn of PD pd there.  URXE_INV_FAILED: there is no such
 * window.  In qp's own context it waits until the end; in another one a process
 * that is stopped may be in the way: then it is not done, and to be called
 * again with what it returned (URXE_INV_TO_DO; BEGUN: nobody finds the window
 * now).
 */
enum urxe_inv bind_invalidate(struct urxe_qp *qp, struct urxe_peer *p,
			      uint32_t qpn, uint32_t pd, uint32_t rkey,
			      enum urxe_inv so_far);

/*
 * A window is not valid any more; when nobody uses it, it is not bound any
 * more, unless somebody else bound it anew meanwhile.  The arena's lock is
 * held, but not while this waits; afterwards look again.  0, or -errno: and
 * then the lock is not held.  -EAGAIN: somebody still uses it, at `until` of
 * clock_now(); 0: wait for ever.
 */
int bind_undo(struct urxe_fabric *f, struct urxe_arena *a, struct urxe_key *k,
	      uint64_t until);
