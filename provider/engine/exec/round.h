/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A round of the service thread; see round.c. */
#pragma once

#include "engine/core/context.h"

/*
 * Run one round.  Returns the time of the next one, UINT64_MAX for none.
 * *life is the time of the next liveness check.  woken: the exit of any peer
 * wakes the calling thread.  context_open() stores this in ctx->round.
 */
uint64_t round_run(struct urxe_context *ctx, uint64_t *liveness, bool woken);
