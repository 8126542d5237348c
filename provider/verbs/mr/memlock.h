/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RLIMIT_MEMLOCK, as the kernel's ib_umem_get() accounts it in mm->pinned_vm.
 *
 * The pages of each MR of the process are charged, and a page of two MRs is
 * charged twice.  On-demand memory, dma-bufs and device memory are not
 * charged.  urxe pins nothing.  The limit is enforced only if
 * URXE_MEMLOCK=enforce or the device's profile has the quirk MEMLOCK, and only
 * for a process without CAP_IPC_LOCK.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "engine/core/context.h"

internal void memlock_init(void);
/*
 * Reset the count in the child of a fork: its address space has no pinned
 * pages.
 */
internal void memlock_after_fork(void);

/*
 * Charge the range of @length bytes at @addr.  *@pages is to be passed to
 * memlock_release().  0, -ENOMEM, or -EPERM if the limit is 0; on failure
 * nothing is charged and *@pages is 0.
 */
internal int memlock_charge(const struct urxe_context *ctx, uint64_t addr,
			    uint64_t length, uint64_t *pages);
internal void memlock_release(uint64_t pages);

/*
 * Return whether the kernel would have refused the last MR.  *@bytes is what
 * all MRs of the process would pin.  *@limit is set if there is a limit, in
 * bytes.
 */
internal bool memlock_exceeded(uint64_t *bytes, uint64_t *limit);
