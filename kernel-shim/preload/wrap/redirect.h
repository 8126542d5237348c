/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which paths lead into the fabric's private tree. */
#pragma once

#include "preload/shim.h"
#include "preload/tree/tree.h"

/*
 * Where the file at path really is: path itself, or buf with a place in the
 * fabric's private tree.
 */
const char *redirect_slow(const char *path, char buf[TREE_PATH_MAX]);

static inline const char *redirect(const char *path, char buf[TREE_PATH_MAX])
{
	if (!path || path[0] != '/' ||
	    (path[1] != 's' && path[1] != 'd' && path[1] != '/' &&
	     path[1] != '.') ||
	    !shim_active())
		return path;
	return redirect_slow(path, buf);
}

/* Turn a resolved path in the private tree into what it stands for. */
void redirect_back(char *path);
