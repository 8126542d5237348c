/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * On-demand paging.  The memory of an ODP MR is not checked at registration.
 * Pages may be mapped and unmapped later, and an access to an unmapped page
 * gives an error completion.  Therefore the memory is never accessed by loads
 * and stores, not even in the process's own address space.  It is copied by
 * process_vm_readv/writev (copy path 3), which return an error where a load
 * would raise SIGSEGV.
 */
#pragma once

#include <stdbool.h>

#include "shared/layout.h"

/*
 * Populate the pages of [va, va + len) of this process, for write access if
 * write is set (MADV_POPULATE_READ, MADV_POPULATE_WRITE).  The requester
 * calls this for its local memory before it sends anything.  0, or -EFAULT if
 * the pages are not accessible.  (For pages of another process the copy
 * fails.)
 */
int odp_populate(uint64_t va, uint64_t len, bool write);
