/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Why a WR fails, waits or is dropped.
 *
 * A check that finds something wrong notes its reason (shared/reasons.h) for
 * its thread, whether or not somebody listens.  Whoever acts on it says it, and
 * leaves it at the QPs that it breaks: the requester executes the responder, so
 * the responder's process learns from its QP what was refused there, and says
 * it when it sees that the QP is broken.
 */
#pragma once

#include <infiniband/verbs.h>

#include "fabric/reason.h"

struct urxe_arena;
struct urxe_qp;
struct urxe_qp_sh;
struct urxe_wqe;

/* why_note(CODE, values...) */
#define WHY_LIST(...)       \
	(const uint64_t[])  \
	{                   \
		__VA_ARGS__ \
	}
#define why_note(name, ...)                                   \
	why_note_values(REASON_##name, WHY_LIST(__VA_ARGS__), \
			sizeof(WHY_LIST(__VA_ARGS__)) / sizeof(uint64_t))
void why_note_values(enum reason code, const uint64_t *value, size_t n)
	__attribute__((cold, noinline));

/* What was noted last, to be recalled later. */
void why_noted(struct urxe_reason *r);
void why_recall(const struct urxe_reason *r);
/* What was noted is of the WR in slot index, which failed; it is completed
 * later, maybe. */
void why_take(struct urxe_qp *qp, uint32_t index);
/* w completes with status, and qp is broken. */
void why_failed(struct urxe_qp *qp, const struct urxe_wqe *w,
		enum ibv_wc_status status);
/* What was noted is dealt with: no later failure is to be taken for it. */
void why_settled(void);
/* w cannot go on now, or is dropped without an answer. */
void why_waits(const struct urxe_qp *qp, const struct urxe_wqe *w);
void why_dropped(const struct urxe_qp *qp, const struct urxe_wqe *w);

/* The QP of sh, in arena a, is broken by a WR of qp; qp and w may be NULL. */
void why_refused(struct urxe_arena *a, struct urxe_qp_sh *sh,
		 const struct urxe_qp *qp, const struct urxe_wqe *w);
/* qp is broken, and not by a WR of its own. */
void why_broken(struct urxe_qp *qp, enum reason code);
/* qp was made anew. */
void why_forget(struct urxe_qp *qp);

/* Say, once, what another process refused on behalf of this QP. */
void why_tell(struct urxe_qp *qp);
/* So many were flushed. */
void why_flushed(struct urxe_qp *qp, const char *what, uint32_t n,
		 uint64_t first);
