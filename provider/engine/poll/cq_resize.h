/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Replacing the ring of a CQ; see cq_resize.c. */
#pragma once

#include "engine/cq/cq.h"

/*
 * Replace the ring by one of at least cqe entries.  No completion is lost
 * (shared/cq_ring.h, "Resize").  The caller is inside the gate.  Returns 0 or
 * an errno value.
 */
int cq_resize(struct urxe_cq *cq, int cqe);
