/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RLIMIT_MEMLOCK, as the kernel's ib_umem_get() accounts it (mm->pinned_vm):
 * the pages of each MR of the process, those of two MRs twice; not on-demand
 * memory, dma-bufs or device memory.  urxe pins nothing: the limit holds if
 * URXE_MEMLOCK=enforce, and for a process without CAP_IPC_LOCK.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

internal void memlock_init(void);
/* In the child of a fork, whose address space has nothing pinned. */
internal void memlock_after_fork(void);

/* Account a range; *pages is for memlock_release().  -ENOMEM, -EPERM */
internal int memlock_charge(uint64_t addr, uint64_t length, uint64_t *pages);
internal void memlock_release(uint64_t pages);

/* Would the kernel have refused the last MR?  How many bytes it would pin. */
internal bool memlock_exceeded(uint64_t *bytes, uint64_t *limit);
