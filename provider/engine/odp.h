/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * On-demand paging.  Nothing is checked when such an MR is registered; pages
 * come and go while it lives, and an access to one that is not there is an
 * error completion.  So its memory is never touched directly, not even our
 * own: always by process_vm_readv/writev (copy path 3), which fail in the
 * middle of nowhere where a load would kill the process.
 */
#pragma once

#include <stdbool.h>

#include "shared/layout.h"

/*
 * The page fault of the local side: bring in len bytes of this process at va,
 * for writing if wanted, before anything goes out.  0, or -EFAULT: they are
 * not there.  (In another process's pages the copy itself will tell.)
 */
int odp_populate(uint64_t va, uint64_t len, bool write);
