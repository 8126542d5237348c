/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion counters (libibverbs 65 and later).  Both functions are called
 * by the destroyer of a QP, in this order.
 */
#pragma once

#include "qp.h"

/*
 * Stop counting for @vqp; called before the destroyer waits for requesters.
 */
void vqp_stop_counting(struct urxe_vqp *vqp);
/*
 * Release the counters of @vqp, which may be destroyed from here on.  No
 * requester may still be using the QP.
 */
void vqp_detach_counters(struct urxe_vqp *vqp);
