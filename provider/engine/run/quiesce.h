/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Grace periods.  A destroyer first invalidates its object (seq_cst) and then
 * calls one of these functions, which returns when no requester uses the
 * object any more.  shared/guard.h has the protocol, tests/model/guard.pml
 * checks it.
 *
 * The functions sleep while they wait.  They wait only for guards that name
 * the object, and not for guards of dead processes.  They also wait for
 * bouncers that copy for requesters that died (bounce_quiesce()).
 */
#pragma once

#include "base/patience.h"
#include "engine/core/context.h"
#include "shared/guard.h"

/* Wait until no requester uses a key, of protection domain pd, of arena a. */
void quiesce_mr(struct urxe_fabric *f, struct urxe_arena *a, uint32_t key,
		uint32_t pd);
/*
 * The same for a memory window.  False if *patience ended while it was still in
 * use; NULL waits without a limit.
 */
bool quiesce_mw(struct urxe_fabric *f, struct urxe_arena *a, uint32_t key,
		struct patience *patience);
/*
 * Wait until no requester executes a request to QP qpn.  from: the only QP
 * that may send requests to it, or 0 for any.
 */
void quiesce_qp(struct urxe_fabric *f, struct urxe_arena *a, uint32_t qpn,
		uint32_t from);
/* The same for an SRQ or its ring, and for a CQ's ring. */
void quiesce_srq(struct urxe_fabric *f, struct urxe_arena *a, uint32_t index);
void quiesce_cq(struct urxe_fabric *f, struct urxe_arena *a, uint32_t index);

/*
 * For callers that must not block: does the requester of QP peer, which is
 * connected to QP qpn, or a socket owner of the wire use QP qpn now?
 */
bool quiesce_qp_busy(struct urxe_fabric *f, uint32_t qpn, uint32_t peer);
/*
 * Wait for about QUIESCE_TRY_NS; false if a requester or a bouncer still
 * uses the object.
 */
bool quiesce_try(struct urxe_fabric *f, struct urxe_arena *a,
		 const struct guard_object *t);
