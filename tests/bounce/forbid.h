/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#define FORBID_READ 1
#define FORBID_WRITE 2

/*
 * From now on process_vm_readv, process_vm_writev or both fail with EPERM in
 * this process and all that it starts.  0 or errno.
 */
int forbid(int what);

/* From now on shared memory cannot be reserved, as if it were full. */
int no_memory(void);
