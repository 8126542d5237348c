/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * On-demand paging: registration and capabilities.  engine/odp.h explains how
 * such memory is accessed.
 */
#pragma once

#include <infiniband/verbs.h>

#include "shared/layout.h"

/*
 * Complete the description of an MR with IBV_ACCESS_ON_DEMAND.  0, or
 * -EINVAL; fabric_why() has the reason.
 */
int odp_describe(struct urxe_key *desc);
/* Set the ODP capabilities in @attr. */
void odp_caps(struct ibv_device_attr_ex *attr);
