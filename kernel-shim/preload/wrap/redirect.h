/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Redirection of paths in /sys and /dev to the fabric's private tree
 * (preload/tree/tree.h), for the wrappers of functions that take a path.
 */
#pragma once

#include "preload/shim.h"
#include "preload/tree/tree.h"

/*
 * Return the path at which the file is: @path itself, or @buf with a path in
 * the private tree.  errno is kept.
 */
const char *redirect_slow(const char *path, char buf[TREE_PATH_MAX]);

/*
 * The same, with a fast path: only paths that begin like "/sys", "/dev", "//"
 * or "/." can be redirected, and only if the library is active.  @path may be
 * NULL.
 */
static inline const char *redirect(const char *path, char buf[TREE_PATH_MAX])
{
	if (!path || path[0] != '/' ||
	    (path[1] != 's' && path[1] != 'd' && path[1] != '/' &&
	     path[1] != '.') ||
	    !shim_active())
		return path;
	return redirect_slow(path, buf);
}

/*
 * Replace a resolved path in the private tree by the path in /sys or /dev
 * that it emulates, in place.  Other paths are kept.
 */
void redirect_back(char *path);
