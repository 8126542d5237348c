/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* On-demand paging: registering and prefetching; engine/odp.h has the rest. */
#pragma once

#include <infiniband/verbs.h>

#include "shared/layout.h"

/* Finish the description of an MR with IBV_ACCESS_ON_DEMAND; -EINVAL. */
int odp_describe(struct urxe_key *desc);
void odp_caps(struct ibv_device_attr_ex *attr);
