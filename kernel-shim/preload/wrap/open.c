// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wrappers of open and fopen, with their variants.  A path in the emulated
 * sysfs or /dev is redirected to the fabric's private tree (redirect.h).  A
 * character device opened there becomes a context or an event channel
 * (special.h).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "redirect.h"
#include "special.h"
#include "wrap.h"

/*
 * Complete an open of @real, to which @path was redirected.  Only a file of
 * the private tree can be special.  Its path was redirected, or it is
 * relative and this process has opened the fabric before.
 */
static int open_result(int fd, const char *path, const char *real, int flags)
{
	if (real == path && (path[0] == '/' || !shim_fabric_opened()))
		return fd;
	return shim_active() ? special_open(fd, flags) : fd;
}

static mode_t mode_arg(int flags, va_list ap)
{
	bool has = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;

	return has ? va_arg(ap, mode_t) : 0;
}

#define WRAP_OPEN(name, params, args) \
	WRAP(int, name, params) \
	{ \
		char buf[TREE_PATH_MAX]; \
		const char *asked = path; \
		va_list ap; \
		mode_t mode; \
		va_start(ap, flags); \
		mode = mode_arg(flags, ap); \
		va_end(ap); \
		path = redirect(path, buf); \
		return open_result(NEXT(name) args, asked, path, flags); \
	}
WRAP_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
WRAP_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
WRAP_OPEN(openat, (int dir, const char *path, int flags, ...),
	  (dir, path, flags, mode))
WRAP_OPEN(openat64, (int dir, const char *path, int flags, ...),
	  (dir, path, flags, mode))

/* open(path, flags) is compiled to these with _FORTIFY_SOURCE. */
#define WRAP_OPEN_2(name, params, args) \
	WRAP(int, name, params) \
	{ \
		char buf[TREE_PATH_MAX]; \
		const char *asked = path; \
		path = redirect(path, buf); \
		return open_result(NEXT(name) args, asked, path, flags); \
	}
WRAP_OPEN_2(__open_2, (const char *path, int flags), (path, flags))
WRAP_OPEN_2(__open64_2, (const char *path, int flags), (path, flags))
WRAP_OPEN_2(__openat_2, (int dir, const char *path, int flags),
	    (dir, path, flags))
WRAP_OPEN_2(__openat64_2, (int dir, const char *path, int flags),
	    (dir, path, flags))

/*
 * fopen(3) of a file in the private tree, read-only: attributes can only be
 * read.
 */
static FILE *fopen_tree(const char *real, const char *mode)
{
	int flags = O_RDONLY, saved, fd;
	const char *m;
	FILE *file;

	for (m = mode; *m; m++)
		if (*m == 'e')
			flags |= O_CLOEXEC;
	saved = shim_enter();
	fd = open(real, flags);
	if (fd < 0)
		saved = errno;
	shim_leave(saved);
	fd = special_open(fd, flags);
	if (fd < 0)
		return NULL;
	file = fdopen(fd, mode);
	if (!file) {
		saved = errno;
		close(fd);
		errno = saved;
	}
	return file;
}

#define WRAP_FOPEN(name) \
	WRAP(FILE *, name, (const char *path, const char *mode)) \
	{ \
		char buf[TREE_PATH_MAX]; \
		const char *real = redirect(path, buf); \
		if (real != path && mode[0] == 'r') \
			return fopen_tree(real, mode); \
		return NEXT(name)(real, mode); \
	}
WRAP_FOPEN(fopen)
WRAP_FOPEN(fopen64)
