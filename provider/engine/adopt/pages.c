// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Replace private pages of this process by pages of a memfd, and back, while
 * other threads use them. The callers are adopt.c and
 * adopt_fork.c.
 *
 * To shared pages: no concurrent store may be lost. The range is
 * write-protected with userfaultfd, so that writing threads block in the page
 * fault. The range is copied to the memfd, and the memfd's mapping is moved
 * into place by one mremap(). The blocked threads then retry their store in
 * the new mapping.
 *
 * Meanwhile this thread must not write to the range itself: its signals are
 * blocked, and neither its stack nor its thread-local data may lie in the
 * range. It takes no lock and allocates no memory, because a blocked thread
 * may hold the lock.
 *
 * A system call that writes to the range also blocks if userfaultfd may
 * handle kernel faults, which needs a privilege. Otherwise the call fails
 * with EFAULT. I/O on pages that were pinned before (O_DIRECT, io_uring,
 * vmsplice) goes to the old pages.
 *
 * To private pages: a private mapping of the same file is moved into place by
 * one mremap(). It shows the contents of the file until a page is written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/madvise.h"
#include "pages.h"
#include "smaps.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1 /* Linux 5.11 */
#endif
/* UFFD_FEATURE_WP_UNPOPULATED, Linux 6.4: write-protects absent pages too. */
#define WP_UNPOPULATED (1u << 13)

/*
 * Size in bytes that an emptied file is given, so that a private mapping of
 * it can be grown by mremap().
 */
#define LONGEST (1ll << 46)

/*
 * Return whether @fd is in the lower half of RLIMIT_NOFILE. Programs that use
 * almost all of their descriptors must not run short.
 */
static bool fd_is_spare(int fd)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) &&
	       (rlim_t)fd < limit.rlim_cur / 2;
}

/* Check RLIMIT_FSIZE: exceeding it would raise SIGXFSZ. */
static bool file_may_have(size_t len)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && len <= limit.rlim_cur;
}

static int file_make(size_t len, struct stat *st, void **map)
{
	int fd, err;

	if (!file_may_have(len))
		return -EFBIG;
	fd = memfd_create(PAGES_NAME, MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = EMFILE;
	if (!fd_is_spare(fd))
		goto err_close;
	if (ftruncate(fd, (off_t)len) || fallocate(fd, 0, 0, (off_t)len) ||
	    fstat(fd, st)) {
		err = errno;
		goto err_close;
	}
	*map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*map != MAP_FAILED)
		return fd;
	err = errno;
err_close:
	close(fd);
	return -err;
}

static bool uffd_agree(int uffd)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | WP_UNPOPULATED,
	};

	if (!ioctl(uffd, UFFDIO_API, &api))
		return true;
	api.api = UFFD_API;
	api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP;
	return !ioctl(uffd, UFFDIO_API, &api);
}

static int uffd_open(void)
{
	int uffd, err;

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0)
		uffd = (int)syscall(SYS_userfaultfd,
				    O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (uffd < 0)
		return -errno;
	if (uffd_agree(uffd))
		return uffd;
	err = errno;
	close(uffd);
	return -err;
}

/*
 * Move @map, a mapping of @fd from v->offset, to @at, over what is mapped
 * there. Return 0, or -errno with @map still in its place.
 *
 * The kernel checks the arguments before it unmaps the target. It may run out
 * of memory afterwards and leave a hole, which is filled by creating the same
 * mapping at @at.
 */
static int pages_move(void *map, size_t len, void *at, int flags, int fd,
		      const struct smaps_vma *v)
{
	int err;

	if (mremap(map, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) !=
	    MAP_FAILED)
		return 0;
	err = errno;
	if (mmap(at, len, v->prot, flags | MAP_FIXED, fd, (off_t)v->offset) ==
	    MAP_FAILED)
		return -err;
	munmap(map, len);
	return 0;
}

/*
 * Copy @len bytes at @at to @copy, a mapping of @fd, and move @copy to @at.
 * Return 0 or -errno.
 */
static int pages_replace(int uffd, void *at, size_t len, void *copy, int fd)
{
	const struct smaps_vma all = { .prot = PROT_READ | PROT_WRITE };
	struct uffdio_range range = { .start = (uintptr_t)at, .len = len };
	struct uffdio_writeprotect hold = {
		.range = range,
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int ret = 0;

	if (ioctl(uffd, UFFDIO_WRITEPROTECT, &hold)) {
		ret = -errno;
	} else {
		memcpy(copy, at, len);
		ret = pages_move(copy, len, at, MAP_SHARED, fd, &all);
	}
	if (ret)
		ioctl(uffd, UFFDIO_UNREGISTER, &range);
	ioctl(uffd, UFFDIO_WAKE, &range);
	return ret;
}

static int pages_change(void *at, size_t len, void *copy, int fd)
{
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)at, .len = len },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	sigset_t all, old;
	int uffd, ret;

	/* before Linux 6.4 only present pages can be write-protected */
	if (madvise(at, len, MADV_POPULATE_WRITE))
		return -errno;
	uffd = uffd_open();
	if (uffd < 0)
		return uffd;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = ioctl(uffd, UFFDIO_REGISTER, &reg) ? -errno : 0;
	if (!ret)
		ret = pages_replace(uffd, at, len, copy, fd);
	close(uffd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

/*
 * Return whether the range contains the stack or thread-local data of the
 * calling thread.
 */
static bool pages_are_mine(const void *at, size_t len)
{
	uintptr_t start = (uintptr_t)at, end = start + len;
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
	uintptr_t self = (uintptr_t)&errno;

	return (stack >= start && stack < end) || (self >= start && self < end);
}

int pages_share(void *at, size_t len, struct stat *st)
{
	int fd, ret, saved = errno;
	void *copy;

	if (pages_are_mine(at, len))
		return -EDEADLK;
	fd = file_make(len, st, &copy);
	if (fd >= 0) {
		ret = pages_change(at, len, copy, fd);
		if (ret) {
			munmap(copy, len);
			close(fd);
			fd = ret;
		}
	}
	errno = saved;
	return fd;
}

int pages_unshare(int fd, const struct smaps_vma *v)
{
	size_t len = v->end - v->start;
	void *map, *at = (void *)(uintptr_t)v->start;
	int ret;

	/* create the mapping first: only mmap() checks the commit limit */
	map = mmap(NULL, len, v->prot, MAP_PRIVATE, fd, (off_t)v->offset);
	if (map == MAP_FAILED)
		return -errno;
	ret = pages_move(map, len, at, MAP_PRIVATE, fd, v);
	if (ret) {
		munmap(map, len);
		return ret;
	}
	return madvise(at, len, MADV_POPULATE_WRITE) ? 1 : 0;
}

void pages_empty(int fd)
{
	struct stat st;

	if (fstat(fd, &st) ||
	    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		      st.st_size) ||
	    !file_may_have(LONGEST) || ftruncate(fd, LONGEST))
		return; /* discarded pages then read as file contents */
}

/*
 * Return how many bytes of @v are inside the file, since mremap() may have
 * grown the mapping beyond its end. -1: fstat() failed.
 */
static ssize_t pages_in_file(int fd, const struct smaps_vma *v)
{
	uint64_t len = v->end - v->start;
	struct stat st;

	if (fstat(fd, &st))
		return -1;
	if ((uint64_t)st.st_size <= v->offset)
		return 0;
	return (ssize_t)((uint64_t)st.st_size - v->offset < len ?
				 (uint64_t)st.st_size - v->offset :
				 len);
}

void *pages_copy(int fd, const struct smaps_vma *v)
{
	size_t len = v->end - v->start;
	ssize_t in_file = pages_in_file(fd, v);
	size_t there = (size_t)in_file;
	void *from, *to;

	if (in_file < 0)
		return NULL;
	to = mmap(NULL, len, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (to == MAP_FAILED || !there)
		return to == MAP_FAILED ? NULL : to;
	from = mmap(NULL, there, PROT_READ, MAP_SHARED, fd, (off_t)v->offset);
	if (from == MAP_FAILED) {
		munmap(to, len);
		return NULL;
	}
	memcpy(to, from, there);
	munmap(from, there);
	return to;
}
