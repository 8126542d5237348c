/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The access flags that MRs, device memory and QPs accept. */
#pragma once

#include <infiniband/verbs.h>

#include "shared/layout.h"

#define MR_BASIC_ACCESS                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define MR_ACCESS                                                       \
	(MR_BASIC_ACCESS | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |                    \
	 URXE_ACCESS_FLUSH_GLOBAL | URXE_ACCESS_FLUSH_PERSISTENT)
/* for device memory, which requires IBV_ACCESS_ZERO_BASED */
#define DM_ACCESS                                                       \
	(MR_BASIC_ACCESS | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 URXE_ACCESS_FLUSH_GLOBAL)
