// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Special files of the private tree: see special.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "preload/shim.h"
#include "preload/ucma/ucma.h"
#include "preload/umad/umad.h"
#include "special.h"

/* The number of the verbs device whose placeholder this is, or -1 */
static int stat_device(const struct stat *st)
{
	return st->st_mode == TREE_CDEV_MODE && st->st_size >= TREE_CDEV_SIZE &&
			       st->st_size < TREE_CDEV_SIZE + URXE_HOST_HCAS &&
			       shim_has_file(st) ?
		       (int)(st->st_size - TREE_CDEV_SIZE) :
		       -1;
}

/*
 * The number of the device whose umad or issm placeholder this is, by the size
 * of that of device 0; or -1
 */
static int stat_mad(const struct stat *st, off_t first)
{
	return st->st_mode == TREE_CDEV_MODE && st->st_size >= first &&
			       st->st_size < first + URXE_HOST_HCAS &&
			       shim_has_file(st) ?
		       (int)(st->st_size - first) :
		       -1;
}

/* The placeholder of /dev/infiniband/rdma_cm, or the FIFO of a channel */
static bool stat_is_cm(const struct stat *st)
{
	return ((st->st_mode == TREE_CDEV_MODE &&
		 st->st_size == TREE_CM_SIZE) ||
		st->st_mode == CM_FIFO_MODE) &&
	       shim_has_file(st);
}

/* The placeholder of an empty GID table entry's attribute */
static bool stat_is_unreadable(const struct stat *st)
{
	return st->st_mode == TREE_EINVAL_MODE && !st->st_size &&
	       shim_has_file(st);
}

/* errno of this thread's last open of a device; 0: it succeeded. */
static _Thread_local int open_error __attribute__((tls_model("initial-exec")));

/*
 * Complete the open of a device: @fd is the descriptor (O_CLOEXEC) or -errno.
 * Note and report an error, or clear FD_CLOEXEC as @flags has it.
 */
static int special_open_result(int fd, const char *failure, int flags)
{
	open_error = fd < 0 ? -fd : 0;
	if (fd < 0)
		shim_complain(failure, fd);
	else if (!(flags & O_CLOEXEC))
		fcntl(fd, F_SETFD, 0);
	return fd;
}

static int special_open_context(uint32_t k, int flags)
{
	struct urxe_fabric *f = shim_fabric();
	char failure[32];
	int fd;

	if (!f || k >= f->hcas)
		return -ENODEV;
	fabric_why_clear();
	fd = fabric_context_open(f, f->first + k);
	/* fabrics of killed jobs may use the memory: remove them */
	if (fd == -ENOMEM && fabric_sweep(f->dir, true, NULL))
		fd = fabric_context_open(f, f->first + k);
	snprintf(failure, sizeof(failure), "cannot open %.15s",
		 fabric_hca(f, k)->name);
	return special_open_result(fd, failure, flags);
}

static int special_open_channel(int flags)
{
	fabric_why_clear();
	return special_open_result(ucma_open(flags), "cannot open rdma_cm",
				   flags);
}

/* Open a umad or issm device.  Return false if the file is neither. */
static bool special_open_mad(const struct stat *st, int fd, int flags, int *ret)
{
	const int umad = stat_mad(st, TREE_UMAD_SIZE);
	const int issm = stat_mad(st, TREE_ISSM_SIZE);

	if (umad < 0 && issm < 0)
		return false;
	close(fd);
	fabric_why_clear();
	*ret = umad < 0 ? umad_open_issm((uint32_t)issm, flags) :
			  umad_open((uint32_t)umad, flags);
	if (*ret != -EAGAIN)
		*ret = special_open_result(*ret, "cannot open the umad device",
					   flags);
	return true;
}

int special_watch(const char *path)
{
	int err = open_error;

	if (!err || strcmp(path, "/dev/char/"))
		return 0;
	open_error = 0;
	return err;
}

int special_open(int fd, int flags)
{
	int saved, device, ret = fd;
	struct stat st;

	if (fd < 0 || flags & (O_PATH | O_DIRECTORY))
		return fd;
	saved = shim_enter();
	if (fstat(fd, &st)) {
		shim_leave(saved);
		return fd;
	}
	device = stat_device(&st);
	if (device >= 0) {
		close(fd);
		ret = special_open_context((uint32_t)device, flags);
	} else if (stat_is_cm(&st)) {
		close(fd);
		ret = special_open_channel(flags);
	} else if (special_open_mad(&st, fd, flags, &ret)) {
		/* ret is set */
	} else if (stat_is_unreadable(&st)) {
		close(fd);
		/* read(2) of an epoll descriptor is EINVAL, as in sysfs */
		ret = epoll_create1(flags & O_CLOEXEC ? EPOLL_CLOEXEC : 0);
		if (ret < 0)
			ret = -errno;
	}
	if (ret < 0) {
		saved = -ret;
		ret = -1;
	}
	shim_leave(saved);
	return ret;
}

/*
 * The number of a device among those of this host, or -1.  A device of another
 * host, whose descriptor was passed here, has number 0.
 */
static int own_number(int device)
{
	const struct urxe_fabric *f = shim_fabric_opened();

	if (device < 0 || !f)
		return device;
	device -= (int)f->first;
	return device >= 0 && device < (int)f->hcas ? device : 0;
}

void special_stat(int fd, struct stat *st)
{
	int saved = shim_enter();
	const int placeholder = stat_device(st);
	int device = placeholder;

	if (device < 0 && fd >= 0)
		device = own_number(fabric_arena_device(fd, st));
	if (stat_is_unreadable(st)) {
		st->st_mode = S_IFREG | 0444;
	} else if (device >= 0) {
		/* keep the size of an arena: the provider checks it */
		if (placeholder >= 0)
			st->st_size = 0;
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = makedev(URXE_DEV_MAJOR,
				      URXE_DEV_MINOR + (unsigned int)device);
		st->st_blocks = 0;
	} else if (stat_mad(st, TREE_UMAD_SIZE) >= 0 ||
		   stat_mad(st, TREE_ISSM_SIZE) >= 0) {
		device = (int)(st->st_size - TREE_UMAD_SIZE);
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = makedev(URXE_DEV_MAJOR,
				      URXE_UMAD_MINOR + (unsigned int)device);
		st->st_size = st->st_blocks = 0;
	} else if (stat_is_cm(st)) {
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = makedev(URXE_CM_MAJOR, URXE_CM_MINOR);
		st->st_size = st->st_blocks = 0;
	}
	shim_leave(saved);
}
