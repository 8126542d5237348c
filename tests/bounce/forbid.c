// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * seccomp filters for the test of bounce buffers.  Containers have similar
 * ones.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "forbid.h"

/*
 * Make system calls @first and @last fail with @error in all threads.  Return
 * 0 or an errno value.
 */
static int filter(unsigned int first, unsigned int last, unsigned int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, last, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_TSYNC, &prog) ?
		       errno :
		       0;
}

int forbid(int what)
{
	return filter(what & FORBID_READ ? SYS_process_vm_readv :
					   SYS_process_vm_writev,
		      what & FORBID_WRITE ? SYS_process_vm_writev :
					    SYS_process_vm_readv,
		      EPERM);
}

int no_memory(void)
{
	return filter(SYS_fallocate, SYS_fallocate, ENOSPC);
}
