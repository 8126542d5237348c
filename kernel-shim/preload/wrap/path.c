// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wrappers of functions that take a path and need no more than its
 * redirection to the private tree (redirect.h): opendir, scandir, access,
 * readlink, realpath, glob and others.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "redirect.h"
#include "wrap.h"

#define WRAP_PATH(type, name, params, args) \
	WRAP(type, name, params) \
	{ \
		char buf[TREE_PATH_MAX]; \
		path = redirect(path, buf); \
		return NEXT(name) args; \
	}

typedef int filter_fn(const struct dirent *);
typedef int compare_fn(const struct dirent **, const struct dirent **);

WRAP_PATH(DIR *, opendir, (const char *path), (path))
WRAP_PATH(int, scandir,
	  (const char *path, struct dirent ***out, filter_fn *f, compare_fn *c),
	  (path, out, f, c))
WRAP_PATH(int, scandir64,
	  (const char *path, struct dirent ***out, filter_fn *f, compare_fn *c),
	  (path, out, f, c))
WRAP_PATH(int, access, (const char *path, int mode), (path, mode))
WRAP_PATH(int, eaccess, (const char *path, int mode), (path, mode))
WRAP_PATH(int, euidaccess, (const char *path, int mode), (path, mode))
WRAP_PATH(int, faccessat, (int dir, const char *path, int mode, int flags),
	  (dir, path, mode, flags))
WRAP_PATH(int, chdir, (const char *path), (path))
WRAP_PATH(ssize_t, readlink, (const char *path, char *out, size_t len),
	  (path, out, len))
WRAP_PATH(ssize_t, readlinkat,
	  (int dir, const char *path, char *out, size_t len),
	  (dir, path, out, len))
WRAP_PATH(ssize_t, __readlink_chk,
	  (const char *path, char *out, size_t len, size_t room),
	  (path, out, len, room))
WRAP_PATH(ssize_t, __readlinkat_chk,
	  (int dir, const char *path, char *out, size_t len, size_t room),
	  (dir, path, out, len, room))
WRAP_PATH(ssize_t, getxattr,
	  (const char *path, const char *name, void *out, size_t len),
	  (path, name, out, len))
WRAP_PATH(ssize_t, lgetxattr,
	  (const char *path, const char *name, void *out, size_t len),
	  (path, name, out, len))
WRAP_PATH(ssize_t, listxattr, (const char *path, char *out, size_t len),
	  (path, out, len))
WRAP_PATH(ssize_t, llistxattr, (const char *path, char *out, size_t len),
	  (path, out, len))

/* Their result is mapped back from the private tree to /sys or /dev. */
#define WRAP_REALPATH(name, params, args) \
	WRAP(char *, name, params) \
	{ \
		char buf[TREE_PATH_MAX]; \
		const char *asked = path; \
		char *out; \
		path = redirect(path, buf); \
		out = NEXT(name) args; \
		if (out && path != asked) \
			redirect_back(out); \
		return out; \
	}
WRAP_REALPATH(realpath, (const char *path, char *room), (path, room))
WRAP_REALPATH(__realpath_chk, (const char *path, char *room, size_t len),
	      (path, room, len))
WRAP_REALPATH(canonicalize_file_name, (const char *path), (path))

/*
 * glob calls libc's internal functions to read directories, which are not
 * wrapped.  With GLOB_ALTDIRFUNC glibc calls the given functions instead:
 * the wrapped ones.
 * musl has no such flag, so glob is not wrapped there.
 */
#ifdef GLOB_ALTDIRFUNC
typedef int glob_error_fn(const char *, int);

static bool glob_is_ours(const char *pattern, int flags)
{
	return !(flags & GLOB_ALTDIRFUNC) && pattern && shim_active() &&
	       (!strncmp(pattern, "/sys/", 5) || !strncmp(pattern, "/dev/", 5));
}

static void *glob_opendir(const char *path)
{
	return opendir(path);
}

static struct dirent *glob_readdir(void *dir)
{
	return readdir(dir);
}

static void glob_closedir(void *dir)
{
	closedir(dir);
}

static void glob_use_own(glob_t *g)
{
	g->gl_opendir = glob_opendir;
	g->gl_readdir = glob_readdir;
	g->gl_closedir = glob_closedir;
	g->gl_stat = stat;
	g->gl_lstat = lstat;
}

#define WRAP_GLOB(name) \
	WRAP(int, name, \
	     (const char *pattern, int flags, glob_error_fn *err, glob_t *g)) \
	{ \
		int ret; \
		if (!glob_is_ours(pattern, flags)) \
			return NEXT(name)(pattern, flags, err, g); \
		glob_use_own(g); \
		ret = NEXT(name)(pattern, flags | GLOB_ALTDIRFUNC, err, g); \
		g->gl_flags &= ~GLOB_ALTDIRFUNC; \
		return ret; \
	}
WRAP_GLOB(glob)
WRAP_GLOB(glob64)
#endif
