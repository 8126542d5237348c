// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wrappers of stat, with its variants: the current names, the names that
 * binaries linked before glibc 2.33 use (__xstat and so on), and statx.
 * Paths are redirected (redirect.h), and special files are reported as what
 * they emulate (special.h).
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

/* Return the descriptor if the call is an fstat (AT_EMPTY_PATH), or -1. */
static int at_fd(int dir, const char *path, int flags)
{
	return flags & AT_EMPTY_PATH && path && !*path ? dir : -1;
}

#define WRAP_STAT(name, params, args, fd) \
	WRAP(int, name, params) \
	{ \
		char buf[TREE_PATH_MAX]; \
		path = redirect(path, buf); \
		return stat_result(NEXT(name) args, fd, st); \
	}
#define WRAP_STAT_BOTH(name, ...) \
	WRAP_STAT(name, __VA_ARGS__) \
	WRAP_STAT(name##64, __VA_ARGS__)

WRAP_STAT_BOTH(stat, (const char *path, struct stat *st), (path, st), -1)
WRAP_STAT_BOTH(lstat, (const char *path, struct stat *st), (path, st), -1)
WRAP_STAT_BOTH(__xstat, (int ver, const char *path, struct stat *st),
	       (ver, path, st), -1)
WRAP_STAT_BOTH(__lxstat, (int ver, const char *path, struct stat *st),
	       (ver, path, st), -1)
WRAP_STAT_BOTH(fstatat,
	       (int dir, const char *path, struct stat *st, int flags),
	       (dir, path, st, flags), at_fd(dir, path, flags))
WRAP_STAT_BOTH(__fxstatat,
	       (int ver, int dir, const char *path, struct stat *st, int flags),
	       (ver, dir, path, st, flags), at_fd(dir, path, flags))

#define WRAP_FSTAT(name, params, args) \
	WRAP(int, name, params) \
	{ \
		return stat_result(NEXT(name) args, fd, st); \
	}
WRAP_FSTAT(fstat, (int fd, struct stat *st), (fd, st))
WRAP_FSTAT(fstat64, (int fd, struct stat *st), (fd, st))
WRAP_FSTAT(__fxstat, (int ver, int fd, struct stat *st), (ver, fd, st))
WRAP_FSTAT(__fxstat64, (int ver, int fd, struct stat *st), (ver, fd, st))

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
