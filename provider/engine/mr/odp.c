// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* On-demand paging: population of pages. See odp.h. */
#include <errno.h>
#include <unistd.h>

#include "base/madvise.h"
#include "odp.h"
#include "engine/mem/vma.h"

int odp_populate(uint64_t va, uint64_t len, bool write)
{
	uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	uint64_t start = va & ~mask;
	uint64_t bytes = (va + len - start + mask) & ~mask;
	int ret, saved = errno;
	struct vma file;

	if (!len)
		return 0;
	if (va + len < va)
		return -EFAULT;
	ret = madvise((void *)(uintptr_t)start, bytes,
		      write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	if (ret)
		ret = -errno;
	errno = saved;
	if (ret == -EINVAL) /* memory of a device (VM_IO, VM_PFNMAP) */
		return vma_check(va, len, write, &file);
	return ret ? -EFAULT : 0;
}
