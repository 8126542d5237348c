/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * To be preloaded: as if pages had 64 KiB, as on some aarch64 kernels.  What
 * sysconf says, and files that are mapped from no page's boundary on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 65536

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (offset % PAGE) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

long sysconf(int name)
{
	static long (*real)(int);

	if (name == _SC_PAGESIZE)
		return PAGE;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sysconf");
	return real(name);
}
