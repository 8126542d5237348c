// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_reg_dmabuf_mr: registration of memory that a file descriptor names and
 * that the application need not map.  Two kinds of descriptor are accepted:
 * device memory (ibv_dm_export_dmabuf_fd), and any file that can be mapped,
 * which the MR maps.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/madvise.h"
#include "engine/core/log.h"
#include "engine/mem/peer.h"
#include "engine/core/process.h"
#include "mr.h"
#include "verbs/verbs.h"

/*
 * Check that the file has the range [@offset, @offset + @length).  Return 0,
 * -EBADF or -EINVAL.  The kernel accepts only dma-bufs, of which fstat()
 * reports no file type or a regular file; so FIFOs, sockets and directories
 * are refused.
 */
static int dmabuf_check_file(int fd, uint64_t offset, uint64_t length)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;
	off_t size;

	if (flags < 0 || flags & O_PATH || fstat(fd, &st))
		return -EBADF;
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISDIR(st.st_mode))
		return fabric_fail(EINVAL, "the descriptor cannot be mapped");
	if (offset + length < offset)
		return -EINVAL;
	size = S_ISREG(st.st_mode) ? st.st_size : lseek(fd, 0, SEEK_END);
	/* a device without a size is not checked here: mmap() does that */
	if ((size > 0 || S_ISREG(st.st_mode)) &&
	    offset + length > (uint64_t)size)
		return fabric_fail(
			EINVAL,
			"the range exceeds the file, which has %lld bytes",
			(long long)size);
	return 0;
}

/*
 * Map the range, and populate its pages, which a NIC would pin: a later
 * access raises no SIGBUS.  On success the caller owns the mapping.  -errno
 */
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
		ret = fabric_fail(
			errno == ENOMEM ? ENOMEM : EFAULT,
			"not all pages of the range can be populated");
		munmap(p, *map_len);
		return ret;
	}
	*map = p;
	return 0;
}

/*
 * Register the device memory in @slot, a reference that dm_import() returned.
 * The MR owns the reference; on failure it is released.  -errno
 */
static int dmabuf_reg_dm(struct urxe_pd *pd, uint64_t offset, size_t length,
			 uint64_t iova, uint32_t slot, int access,
			 struct urxe_mr **mr)
{
	struct urxe_context *ctx = pd->ctx;
	const struct urxe_dm_slot *d = &ctx->fabric->dev->dm[slot];
	const uint64_t heap = ctx->fabric->dm_bytes;
	const uint64_t first = d->offset, size = d->length;
	const struct urxe_key desc = {
		.kind = URXE_MEM_DM,
		.va = first + offset,
		.iova = iova,
		.length = length,
		.access = access,
		.pid = urxe_pid,
		.flags = ctx->self->my_flag,
		.dm = slot + 1,
	};

	if (first <= heap && size <= heap - first && offset <= size &&
	    length <= size - offset && iova + length >= iova)
		return mr_create(pd, &desc, PABI_MR_DMABUF, mr);
	dm_heap_put(ctx->fabric, slot);
	return fabric_fail(EINVAL, "the range exceeds the device memory");
}

/* Register a file; the MR owns the mapping.  -errno */
static int dmabuf_reg_file(struct urxe_pd *pd, uint64_t offset, size_t length,
			   uint64_t iova, int fd, int access,
			   struct urxe_mr **mr)
{
	uint64_t lead = offset % (uint64_t)sysconf(_SC_PAGESIZE);
	struct urxe_key desc;
	size_t map_len = 0;
	void *map = NULL;
	int ret;

	ret = dmabuf_map(fd, offset, length, access & IBV_ACCESS_LOCAL_WRITE,
			 &map, &map_len);
	if (ret)
		return ret;
	ret = mr_describe(pd->ctx, (char *)map + lead, length, iova, access,
			  &desc);
	if (!ret)
		ret = mr_create(pd, &desc, PABI_MR_DMABUF, mr);
	if (ret) {
		munmap(map, map_len);
		return ret;
	}
	(*mr)->map = map;
	(*mr)->map_len = map_len;
	return 0;
}

struct ibv_mr *urxe_reg_dmabuf_mr(struct ibv_pd *ibpd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access)
{
	struct urxe_pd *pd = pd_find(ibpd);
	struct urxe_mr *mr;
	int ret;

	if (!pd)
		return urxe_fail(-ENOENT,
				 "ibv_reg_dmabuf_mr: the PD was destroyed");
	ret = mr_check_access(pd->ctx, access, MR_BASIC_ACCESS);
	if (!ret)
		ret = mr_check_range(offset, length, iova);
	if (!ret)
		ret = dmabuf_check_file(fd, offset, length);
	if (!ret)
		ret = dm_import(pd->ctx->fabric, fd, pd->ctx->slot,
				pd->ctx->gen);
	if (ret >= 0)
		ret = dmabuf_reg_dm(pd, offset, length, iova, ret, access, &mr);
	else if (ret == -ENOTTY)
		ret = dmabuf_reg_file(pd, offset, length, iova, fd, access,
				      &mr);
	return ret ? urxe_fail(ret, "ibv_reg_dmabuf_mr") : &mr->vmr.mr;
}
