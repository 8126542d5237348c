/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion counters, which libibverbs has from release 65. */
#pragma once

#include "qp.h"

/* vqp is destroyed: nobody counts for it any more ... */
void vqp_stop_counting(struct urxe_vqp *vqp);
/* ... and they have left: its counters may be destroyed. */
void vqp_detach_counters(struct urxe_vqp *vqp);
