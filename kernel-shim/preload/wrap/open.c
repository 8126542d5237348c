// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* open and fopen in their variants. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "redirect.h"
#include "special.h"
#include "wrap.h"

/*
 * Only what came from the private tree can be special: a redirected path, or
 * a relative one when this process looked at the tree before.
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

/* What the compiler makes of open(path, flags) with _FORTIFY_SOURCE. */
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

/* Reading is the only thing that makes sense on an attribute. */
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
