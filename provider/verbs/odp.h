/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* On-demand paging: registering and prefetching; engine/odp.h has the rest. */
#ifndef URXE_VERBS_ODP_H
#define URXE_VERBS_ODP_H

#include <infiniband/verbs.h>

#include "shared/layout.h"

/* Finish the description of an MR with IBV_ACCESS_ON_DEMAND; -EINVAL. */
int odp_describe(struct urxe_key *desc);
void odp_caps(struct ibv_device_attr_ex *attr);

int urxe_advise_mr(struct ibv_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		   uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sge);

#endif
