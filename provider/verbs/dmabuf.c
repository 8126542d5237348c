// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_reg_dmabuf_mr: memory that the application names by a descriptor and
 * need not have mapped.  Any descriptor that can be mapped will do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/madvise.h"
#include "engine/log.h"
#include "mr.h"
#include "verbs.h"

/* Is [offset, offset + length) in it?  -EBADF, -EINVAL */
static int dmabuf_check_range(int fd, uint64_t offset, uint64_t length)
{
	struct stat st;
	off_t size;

	if (fstat(fd, &st))
		return -errno;
	if (offset + length < offset)
		return -EINVAL;
	size = S_ISREG(st.st_mode) ? st.st_size : lseek(fd, 0, SEEK_END);
	/* a device that cannot tell its size: mmap will */
	if ((size > 0 || S_ISREG(st.st_mode)) &&
	    offset + length > (uint64_t)size)
		return fabric_fail(EINVAL, "the file has %lld bytes",
				   (long long)size);
	return 0;
}

/* What a NIC would pin is brought in now: no SIGBUS later.  -errno */
static int dmabuf_map(int fd, uint64_t offset, uint64_t length, bool write,
		      void **map, size_t *map_len)
{
	uint64_t lead = offset % (uint64_t)sysconf(_SC_PAGESIZE);
	void *p;
	int ret;

	*map_len = lead + length;
	p = mmap(NULL, *map_len, write ? PROT_READ | PROT_WRITE : PROT_READ,
		 MAP_SHARED, fd, (off_t)(offset - lead));
	if (p == MAP_FAILED)
		return fabric_fail(errno == EACCES ? EACCES : EINVAL,
				   "the descriptor cannot be mapped");
	if (madvise(p, *map_len,
		    write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) &&
	    errno != EINVAL) {
		ret = fabric_fail(errno == ENOMEM ? ENOMEM : EFAULT,
				  "not all of the file has memory");
		munmap(p, *map_len);
		return ret;
	}
	*map = p;
	return 0;
}

struct ibv_mr *urxe_reg_dmabuf_mr(struct ibv_pd *ibpd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access)
{
	uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	struct urxe_pd *pd = to_upd(ibpd);
	int ret;
	struct urxe_key desc;
	struct urxe_mr *mr;
	void *map = NULL;
	size_t map_len = 0;

	ret = mr_check_access(access, MR_BASIC_ACCESS);
	if (!ret && (offset ^ iova) & mask)
		ret = fabric_fail(
			EINVAL, "offset and iova differ in their page offset");
	if (!ret)
		ret = dmabuf_check_range(fd, offset, length);
	if (!ret && length)
		ret = dmabuf_map(fd, offset, length,
				 access & IBV_ACCESS_LOCAL_WRITE, &map,
				 &map_len);
	if (ret)
		goto err;
	ret = mr_describe(pd->ctx, (char *)map + (length ? offset & mask : 0),
			  length, iova, access, &desc);
	if (ret)
		goto err_unmap;
	ret = mr_create(pd, &desc, PABI_MR_DMABUF, &mr);
	if (ret)
		goto err_unmap;
	mr->map = map;
	mr->map_len = map_len;
	return &mr->vmr.mr;

err_unmap:
	if (map)
		munmap(map, map_len);
err:
	return urxe_fail(ret, "ibv_reg_dmabuf_mr");
}
