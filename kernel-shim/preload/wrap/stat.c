// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * stat in its variants: today's names, those that binaries linked before
 * glibc 2.33 use, and statx.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "redirect.h"
#include "special.h"
#include "wrap.h"

static int stat_result(int ret, int fd, struct stat *st)
{
	if (!ret && special_mode(st->st_mode) && shim_active())
		special_stat(fd, st);
	return ret;
}

#define WRAP_STAT(name) \
	WRAP(int, name, (const char *path, struct stat *st)) \
	{ \
		char buf[TREE_PATH_MAX]; \
		return stat_result(NEXT(name)(redirect(path, buf), st), -1, \
				   st); \
	}
WRAP_STAT(stat)
WRAP_STAT(stat64)
WRAP_STAT(lstat)
WRAP_STAT(lstat64)

#define WRAP_XSTAT(name) \
	WRAP(int, name, (int ver, const char *path, struct stat *st)) \
	{ \
		char buf[TREE_PATH_MAX]; \
		return stat_result(NEXT(name)(ver, redirect(path, buf), st), -1, \
				   st); \
	}
WRAP_XSTAT(__xstat)
WRAP_XSTAT(__xstat64)
WRAP_XSTAT(__lxstat)
WRAP_XSTAT(__lxstat64)

#define WRAP_FSTAT(name) \
	WRAP(int, name, (int fd, struct stat *st)) \
	{ \
		return stat_result(NEXT(name)(fd, st), fd, st); \
	}
WRAP_FSTAT(fstat)
WRAP_FSTAT(fstat64)

#define WRAP_FXSTAT(name) \
	WRAP(int, name, (int ver, int fd, struct stat *st)) \
	{ \
		return stat_result(NEXT(name)(ver, fd, st), fd, st); \
	}
WRAP_FXSTAT(__fxstat)
WRAP_FXSTAT(__fxstat64)

/* An empty path with AT_EMPTY_PATH is fstat. */
static int at_fd(int dir, const char *path, int flags)
{
	return flags & AT_EMPTY_PATH && path && !*path ? dir : -1;
}

#define WRAP_FSTATAT(name) \
	WRAP(int, name, \
	     (int dir, const char *path, struct stat *st, int flags)) \
	{ \
		char buf[TREE_PATH_MAX]; \
		return stat_result(NEXT(name)(dir, redirect(path, buf), st, \
					      flags), \
				   at_fd(dir, path, flags), st); \
	}
WRAP_FSTATAT(fstatat)
WRAP_FSTATAT(fstatat64)

#define WRAP_FXSTATAT(name) \
	WRAP(int, name, \
	     (int ver, int dir, const char *path, struct stat *st, int flags)) \
	{ \
		char buf[TREE_PATH_MAX]; \
		return stat_result(NEXT(name)(ver, dir, redirect(path, buf), st, \
					      flags), \
				   at_fd(dir, path, flags), st); \
	}
WRAP_FXSTATAT(__fxstatat)
WRAP_FXSTATAT(__fxstatat64)

#ifdef STATX_BASIC_STATS
WRAP(int, statx,
     (int dir, const char *path, int flags, unsigned int mask,
      struct statx *stx))
{
	char buf[TREE_PATH_MAX];
	int ret = NEXT(statx)(dir, redirect(path, buf), flags, mask, stx);
	struct stat st = { 0 };

	if (ret || !special_mode(stx->stx_mode) || !shim_active())
		return ret;
	st.st_mode = stx->stx_mode;
	st.st_size = (off_t)stx->stx_size;
	st.st_dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);
	special_stat(at_fd(dir, path, flags), &st);
	stx->stx_mode = (uint16_t)st.st_mode;
	stx->stx_size = (uint64_t)st.st_size;
	if (S_ISCHR(st.st_mode)) {
		stx->stx_blocks = 0;
		stx->stx_rdev_major = major(st.st_rdev);
		stx->stx_rdev_minor = minor(st.st_rdev);
	}
	return ret;
}
#endif
