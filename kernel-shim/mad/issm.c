// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The issm devices: while a process has the device of a port open, the port
 * has the IsSM bit, by which a subnet manager announces itself.  It is a file
 * with an OFD lock, which ends with the last descriptor.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mad_device.h"

static int issm_file(struct urxe_fabric *f, uint32_t k, int flags)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "mad.d/issm%u", k);
	fd = openat(f->dirfd, name, flags | O_CLOEXEC, 0600);
	if (fd < 0 && errno == ENOENT && flags & O_CREAT &&
	    !mkdirat(f->dirfd, "mad.d", 0700))
		fd = openat(f->dirfd, name, flags | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int issm_open(struct urxe_fabric *f, uint32_t k, int flags)
{
	struct flock lock = { .l_type = F_WRLCK };
	int fd = issm_file(f, k, O_RDWR | O_CREAT);

	if (fd < 0)
		return fd;
	if (fcntl(fd, flags & O_NONBLOCK ? F_OFD_SETLK : F_OFD_SETLKW, &lock)) {
		flags = errno == EINTR ? -EINTR : -EAGAIN;
		close(fd);
		return flags;
	}
	return fd;
}

bool issm_is_open(struct urxe_fabric *f, uint32_t k)
{
	struct flock lock = { .l_type = F_WRLCK };
	int fd = issm_file(f, k, O_RDWR), ret;

	if (fd < 0)
		return false;
	ret = fcntl(fd, F_OFD_GETLK, &lock);
	close(fd);
	return !ret && lock.l_type != F_UNLCK;
}
