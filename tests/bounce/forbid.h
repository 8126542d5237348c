/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * seccomp filters that make system calls fail, as in a container (forbid.c)
 */
#pragma once

#define FORBID_READ 1
#define FORBID_WRITE 2

/*
 * Make process_vm_readv, process_vm_writev or both fail with EPERM in this
 * process and its future children.  @what is a set of FORBID_*.  This cannot
 * be undone.  Return 0 or an errno value.
 */
int forbid(int what);

/*
 * Make fallocate(2) fail with ENOSPC, as if shared memory were full.  Return
 * 0 or an errno value.
 */
int no_memory(void);
