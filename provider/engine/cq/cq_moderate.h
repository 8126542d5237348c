/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CQ moderation (ibv_modify_cq): the event of an armed CQ is delayed until
 * cq_count completions have been published, or until cq_period microseconds
 * have passed since the first of them.  0 means no limit; both 0 disable
 * moderation.  Producers count; the owner's service thread runs the timer.
 */
#pragma once

#include "cq.h"

#define CQ_MAX_COUNT UINT16_MAX
#define CQ_MAX_PERIOD UINT16_MAX /* us */

/* The limits, as packed by URXE_MODERATE(); 0: no moderation. */
static inline uint32_t cq_limits(const struct urxe_cq_sh *sh)
{
	return load_relaxed(&sh->moderate);
}

/* Count a completion of the armed CQ; true if its event is delayed. */
bool cq_hold_back(struct urxe_cq_view *v);
/* Restart count and timer, when the CQ is armed. */
void cq_hold_reset(struct urxe_cq *cq);
/*
 * Raise the delayed events of ctx whose period has expired.  Takes ctx->lock.
 * Returns the next deadline, a time of clock_now(), or UINT64_MAX.
 */
uint64_t cq_hold_expire(struct urxe_context *ctx);
