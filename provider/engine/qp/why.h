/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reasons why a WR fails, waits or is dropped.
 *
 * A check that fails notes its reason (why_note.h).  The code that acts on the
 * failure logs the reason, and stores it in the shared part of each QP that
 * it moves to the error state.
 *
 * The requester executes the responder's checks.  So the responder's process
 * finds the reason in its own QP, and logs it when it detects that the QP is
 * in the error state (why_log_broken()).
 */
#pragma once

#include <infiniband/verbs.h>

#include "fabric/reason.h"
#include "engine/core/why_note.h"

struct urxe_arena;
struct urxe_qp;
struct urxe_qp_sh;
struct urxe_wqe;

/*
 * Store the noted reason as that of the WR in slot index, which failed and
 * may be completed later.  If several WRs fail, the oldest one determines the
 * reason.
 */
void why_take(struct urxe_qp *qp, uint32_t index);
/*
 * Log and record that w completes with status and moves qp to the error
 * state.  The reason is that of why_take().
 */
void why_failed(struct urxe_qp *qp, const struct urxe_wqe *w,
		enum ibv_wc_status status);
/* Log that w waits, or is dropped without a response. */
void why_waits(const struct urxe_qp *qp, const struct urxe_wqe *w);
void why_dropped(const struct urxe_qp *qp, const struct urxe_wqe *w);

/*
 * Store the noted reason in the responder's QP sh of arena a, which a WR of
 * qp moves to the error state.  qp and w may be NULL.
 */
void why_refused(struct urxe_arena *a, struct urxe_qp_sh *sh,
		 const struct urxe_qp *qp, const struct urxe_wqe *w);
/* Store code as the reason in qp, which is in error not because of a WR. */
void why_broken(struct urxe_qp *qp, enum reason code);
/* Clear the stored reason, when qp is reset. */
void why_forget(struct urxe_qp *qp);

/*
 * Log once why qp is in the error state, if the cause was not one of its own
 * WRs.
 */
void why_log_broken(struct urxe_qp *qp);
/* Log that n WRs (what: sends or receives) were flushed, from wr_id first. */
void why_flushed(struct urxe_qp *qp, const char *what, uint32_t n,
		 uint64_t first);
