/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two ends of a connection that do not agree, and work by luck. */
#pragma once

#include "shadow.h"

/*
 * Look at the other end once, as soon as it is known.  The program uses the QP,
 * and no lock is held.
 */
void pair_look(struct shadow_qp *q);
