// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Merged directories: the entries of the host and of the emulated device.
 * Directories such as "host/sys/class/infiniband" and "host/dev/infiniband"
 * in the fabric contain symbolic links to both, so that one readdir(3) lists
 * both.  They are used with --with-host-devices, and for directories that are
 * always shared.  wrap/redirect.c updates them whenever a program accesses
 * the directory, without a lock.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tree.h"

/* Open the merged directory for @path, and create it if necessary. */
static int host_open(struct urxe_fabric *f, const char *path)
{
	char dir[TREE_PATH_MAX];
	int tree = tree_dirfd(f), fd;

	snprintf(dir, sizeof(dir), "host%s/", path);
	dir_make_parents(tree, dir);
	fd = openat(tree, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tree_dirfd_put(f, tree);
	return fd;
}

/*
 * Make entry @name of the merged directory a symbolic link to @target.
 * rename(2) replaces an existing link, so that other processes, which may do
 * the same concurrently, always find one.
 */
static void host_point(int merged, const char *name, const char *target)
{
	char old[PATH_MAX], tmp[48];
	ssize_t n = readlinkat(merged, name, old, sizeof(old) - 1);

	if (n >= 0) {
		old[n] = 0;
		if (!strcmp(old, target))
			return;
	}
	tree_own_name(tmp, ".link.");
	unlinkat(merged, tmp, 0);
	if (symlinkat(target, merged, tmp))
		return;
	if (renameat(merged, tmp, merged, name))
		unlinkat(merged, tmp, 0);
}

/* Add a link for each entry of directory @from, to its real path. */
static void host_add_all(int merged, const char *from)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct dirent *de;
	DIR *dir;

	dir = opendir(from);
	if (!dir)
		return;
	while ((de = readdir(dir))) {
		if (de->d_name[0] == '.')
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", from, de->d_name) >=
		    (int)sizeof(path))
			continue;
		if (realpath(path, target))
			host_point(merged, de->d_name, target);
	}
	closedir(dir);
}

static bool host_has_entry(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) <
		       (int)sizeof(path) &&
	       !faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

/*
 * Remove entries that are no longer in either directory: devices that were
 * removed.
 */
static void host_drop_stale(int merged, const char *host, const char *own)
{
	DIR *dir = dir_open(merged, ".");
	struct dirent *de;

	if (!dir)
		return;
	while ((de = readdir(dir)))
		if (de->d_name[0] != '.' && !host_has_entry(host, de->d_name) &&
		    !host_has_entry(own, de->d_name))
			unlinkat(merged, de->d_name, 0);
	closedir(dir);
}

void tree_merge_host(struct urxe_fabric *f, const char *path)
{
	char own[TREE_PATH_MAX];
	size_t n;
	int merged;

	tree_path(f, own);
	n = strlen(own);
	snprintf(own + n, sizeof(own) - n, "%s", path);
	merged = host_open(f, path);
	if (merged >= 0) {
		host_drop_stale(merged, path, own);
		host_add_all(merged, path);
		host_add_all(merged, own);
		close(merged);
	}
}
