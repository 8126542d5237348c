/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Registration of memory for on-demand paging.  engine/mr/odp.h explains how
 * such memory is accessed.
 */
#pragma once

#include "shared/layout.h"

/*
 * Complete the description of an MR with IBV_ACCESS_ON_DEMAND.  0, or
 * -EINVAL; fabric_why() has the reason.
 */
int odp_describe(struct urxe_key *desc);
