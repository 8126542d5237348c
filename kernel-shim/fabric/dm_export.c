// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exported device memory: ibv_dm_export_dmabuf_fd and the registration of
 * such a descriptor (provider/verbs/mr/dm.c, dmabuf.c).
 *
 * The descriptor only names an allocation.  A descriptor that could be mapped
 * would be one of the heap and give access to all device memory.  A kernel's
 * dma-buf of device memory cannot be mapped either.  The descriptor is a
 * sealed, empty memfd with the size of the allocation.  It is opened
 * write-only, so that mmap(2) fails.  The memfd's name identifies the fabric
 * and the allocation, also after the descriptor was sent by SCM_RIGHTS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric.h"
#include "internal.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3 */
#endif

/* node_guid, inode of the heap's file, slot, URXE_DM_MADE() of the slot */
#define NAME "urxe-dm:%llx:%llx:%u:%u"
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int export_create(const char *name, uint64_t size)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd, ret;

	ret = sparse_allowed(size);
	if (ret)
		return ret;
	fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)size) && !fcntl(fd, F_ADD_SEALS, SEALS))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int dm_export(struct urxe_fabric *f, uint32_t slot, uint32_t made)
{
	const struct urxe_dev *dev = f->dev;
	char name[100], path[40];
	int fd, out;

	snprintf(name, sizeof(name), NAME,
		 (unsigned long long)dev->hca[0].node_guid,
		 (unsigned long long)load_relaxed(&dev->dm_ino), slot, made);
	fd = export_create(name, dev->dm[slot].length);
	if (fd < 0)
		return fabric_fail(-fd, "cannot create a descriptor: %s",
				   strerror(-fd));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	out = open(path, O_WRONLY | O_CLOEXEC);
	if (out < 0)
		out = fabric_fail(errno, "%s: %s", path, strerror(errno));
	close(fd);
	return out;
}

int dm_import(struct urxe_fabric *f, int fd, uint32_t ctx, uint32_t ctx_gen)
{
	const struct urxe_dev *dev = f->dev;
	unsigned long long guid, ino;
	unsigned int slot, made;
	char path[200];
	int ret;

	if (file_path(fd, path, sizeof(path)) ||
	    sscanf(path, "/memfd:" NAME, &guid, &ino, &slot, &made) != 4)
		return -ENOTTY;
	if (guid != dev->hca[0].node_guid || ino != load_relaxed(&dev->dm_ino))
		return fabric_fail(EINVAL,
				   "the device memory is of another fabric");
	ret = fabric_obj_get(f, ctx, URXE_OBJ_DM);
	if (ret)
		return ret;
	ret = dm_heap_share(f, slot, made, ctx, ctx_gen);
	if (ret < 0)
		fabric_obj_put(f, ctx, URXE_OBJ_DM);
	return ret;
}
