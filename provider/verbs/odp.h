/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * On-demand paging.  Nothing is checked when such an MR is registered; pages
 * come and go while it lives, and an access to one that is not there is an
 * error completion.  So its memory is never touched directly, not even our
 * own: always by process_vm_readv/writev (copy path 3), which fail in the
 * middle of nowhere where a load would kill the process.
 */
#ifndef URXE_ODP_H
#define URXE_ODP_H

#include "engine/urxe.h"

/* Finish the description of an MR with IBV_ACCESS_ON_DEMAND; -EINVAL. */
int odp_describe(struct urxe_key *desc);

/*
 * The page fault of the local side: bring in len bytes at addr of k, memory
 * of this process, for writing if wanted, before anything goes out.  False:
 * they are not there.  (In another process's pages the copy itself will tell.)
 */
bool odp_fault(const struct urxe_key *k, uint64_t addr, uint64_t len,
	       bool write);

int urxe_advise_mr(struct ibv_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		   uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sge);

void odp_caps(struct ibv_device_attr_ex *attr);

#endif
