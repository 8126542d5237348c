/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Moderation: an armed CQ's event waits until cq_count completions came, or
 * until cq_period microseconds have passed since the first of them.  0 means
 * no such limit, both 0 no moderation.  Producers count; the time is kept by
 * the service thread of the CQ's owner.
 */
#pragma once

#include "cq.h"

#define CQ_MAX_COUNT UINT16_MAX
#define CQ_MAX_PERIOD UINT16_MAX /* us */

/* URXE_MODERATE() */
static inline uint32_t cq_limits(const struct urxe_cq_sh *sh)
{
	return load_relaxed(&sh->moderate);
}

/* A completion for the armed CQ: has its event to wait? */
bool cq_hold_back(struct urxe_cq_view *v);
/* Newly armed: count and time start again. */
void cq_hold_reset(struct urxe_cq *cq);
/*
 * Fire the events of ctx whose time has come; ctx->lock is free.  Returns
 * the next deadline on clock_now()'s clock, UINT64_MAX for none.
 */
uint64_t cq_hold_expire(struct urxe_context *ctx);
