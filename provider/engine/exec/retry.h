/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Retries of parked send queues (qp/stall.h), and progress of transports.
 */
#pragma once

#include <stdint.h>

struct urxe_context;
struct urxe_cq;

/*
 * Make progress on the QPs of cq: flush those in error and retry parked
 * queues.  Called by pollers; takes ctx->lock.
 */
void retry_progress(struct urxe_cq *cq);

/*
 * The same for all CQs of ctx; called by the service thread.  Returns the
 * next deadline, a time of clock_now(), or UINT64_MAX.
 */
uint64_t retry_all(struct urxe_context *ctx);
