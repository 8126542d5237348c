// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Redirection of paths to the fabric's private tree (redirect.h).
 *
 * An absolute path under one of the prefixes below becomes the same path
 * under the fabric's directory, after "//" and "/./" are reduced to "/".  A
 * path with "/../" is redirected only if the tree contains it.
 *
 * The host's entries are visible as well with URXE_HOST_DEVICES=1, and always
 * in directories of kind SHARED.  There, a path that the tree does not
 * contain is not redirected.  A directory of kind CLASS or SHARED itself is
 * redirected to one that lists both.  With URXE_RDMA_CM=host, paths of
 * rdma_cm are not redirected.
 *
 * Any thread calls these functions.  They keep errno and cannot fail: a path
 * that cannot be redirected is returned as it is.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "redirect.h"

enum prefix_kind {
	OURS, /* the host has nothing there */
	CLASS, /* the host has entries, hidden by default */
	SHARED, /* the host's entries are never hidden */
	CLUSTER, /* the same, if a cluster file may name entries there */
};

static const struct {
	const char *path;
	enum prefix_kind kind;
} prefixes[] = {
	{ "/sys/class/infiniband", CLASS },
	{ "/sys/class/infiniband_verbs", CLASS },
	{ "/sys/class/infiniband_mad", CLASS },
	{ "/sys/class/pci_bus/" TREE_OWN_BUS, OURS },
	{ "/sys/bus/pci/devices", SHARED },
	{ "/sys/bus/pci/drivers/urxe", OURS },
	{ "/sys/devices/pci" TREE_OWN_BUS, OURS },
	{ "/sys/devices/pci####:##", CLUSTER },
	{ "/sys/class/pci_bus/####:##", CLUSTER },
	{ "/dev/infiniband", CLASS },
	{ "/dev/char/" TREE_DEV_NUMBER, OURS },
	{ "/sys/class/misc/rdma_cm", OURS },
};
#define PREFIXES (sizeof(prefixes) / sizeof(*prefixes))

/*
 * Copy a path without "//" and "/./"; false if it does not fit.  ".." is left
 * to the kernel.
 */
static bool redirect_squeeze(const char *in, char *out, size_t room)
{
	char *end = out + room - 1;

	while (*in && out < end) {
		if (*in == '/' && in[1] == '/') {
			in++;
			continue;
		}
		if (*in == '/' && in[1] == '.' && (in[2] == '/' || !in[2])) {
			in += 2;
			if (!*in)
				*out++ = '/';
			continue;
		}
		*out++ = *in++;
	}
	*out = 0;
	return !*in;
}

/*
 * Return whether @path begins with a prefix of @n bytes, in which '#' is a
 * hexadecimal digit.
 */
static bool path_begins(const char *path, const char *prefix, size_t n)
{
	for (; n && (*path == *prefix ||
		     (*prefix == '#' && isxdigit((unsigned char)*path)));
	     n--, path++, prefix++)
		;
	return !n;
}

/* Return the index of the prefix that @path is under, or -1. */
static int redirect_prefix(const char *path)
{
	unsigned int i;
	size_t n;

	for (i = 0; i < PREFIXES; i++) {
		n = strlen(prefixes[i].path);
		if (path_begins(path, prefixes[i].path, n) &&
		    (path[n] == '/' || !path[n]))
			return (int)i;
	}
	return -1;
}

/*
 * Update what the program may be about to read at @path: load the provider,
 * refresh counters, GIDs and the port state.
 */
static void redirect_prepare(struct urxe_fabric *f, const char *path)
{
	if (strstr(path, "infiniband_verbs"))
		shim_load_provider();
	if (strstr(path, "counters/"))
		tree_refresh_counter(f, path + 1);
	if (strstr(path, "/ports") || strstr(path, "/device") ||
	    !strcmp(path, "/sys/class/infiniband")) {
		shim_refresh_gids(f);
		tree_refresh(f);
	}
}

static const char *redirect_resolve(const char *path, const char *norm,
				    char buf[TREE_PATH_MAX], int prefix)
{
	const char *rest = norm + strlen(prefixes[prefix].path);
	enum prefix_kind kind = prefixes[prefix].kind;
	bool shared = shim_with_host() || kind == SHARED || kind == CLUSTER;
	struct urxe_fabric *f = kind == CLUSTER ? shim_fabric_if_any() :
						  shim_fabric();
	char tree[TREE_PATH_MAX];

	if (kind == CLUSTER && !(f && f->dev->cluster))
		return path;
	if (f)
		tree_path(f, tree);
	else
		snprintf(tree, sizeof(tree), "%s", shim_dir());
	if (kind == CLUSTER) {
		snprintf(buf, TREE_PATH_MAX, "%.300s%.299s", tree, norm);
		if (faccessat(AT_FDCWD, buf, F_OK, AT_SYMLINK_NOFOLLOW))
			return path;
	}
	if (f)
		redirect_prepare(f, norm);
	if (strstr(norm, "/rdma_cm") && shim_host_cm())
		return path;
	if (f && shared && kind != OURS &&
	    (!*rest || !strcmp(rest, "/"))) {
		tree_merge_host(f, norm);
		return snprintf(buf, TREE_PATH_MAX, "%s/host%s", tree, norm) <
				       TREE_PATH_MAX ?
			       buf :
			       path;
	}
	/* without a fabric no such file exists: the host's is hidden */
	if (snprintf(buf, TREE_PATH_MAX, "%s%s", tree, norm) >= TREE_PATH_MAX)
		return path;
	if (shared || strstr(norm, "/../")) {
		if (faccessat(AT_FDCWD, buf, F_OK, AT_SYMLINK_NOFOLLOW))
			return path;
	}
	return buf;
}

const char *redirect_slow(const char *path, char buf[TREE_PATH_MAX])
{
	char norm[TREE_PATH_MAX / 2];
	int saved, prefix;

	if (!redirect_squeeze(path, norm, sizeof(norm)))
		return path;
	prefix = redirect_prefix(norm);
	if (prefix < 0)
		return path;
	saved = shim_enter();
	path = redirect_resolve(path, norm, buf, prefix);
	shim_leave(saved);
	return path;
}

/* Strip the private tree's directory @dir from *path; false: not in it. */
static bool redirect_strip(char *path, const char *dir)
{
	size_t n = strlen(dir);
	const char *rest = path + n;

	if (!n || strncmp(path, dir, n))
		return false;
	if (!strncmp(rest, "/host/", 6))
		rest += 5;
	if (strncmp(rest, "/sys/", 5) && strncmp(rest, "/dev/", 5))
		return false;
	memmove(path, rest, strlen(rest) + 1);
	return true;
}

void redirect_back(char *path)
{
	struct urxe_fabric *f = shim_fabric_opened();
	char tree[TREE_PATH_MAX], real[TREE_PATH_MAX + 300];
	int saved = shim_enter();

	if (f)
		tree_path(f, tree);
	if (f && !redirect_strip(path, tree)) {
		/* URXE_DIR may contain symbolic links, realpath's has none */
		file_path(f->dirfd, real, 300);
		strcat(real, tree + strlen(f->dir));
		redirect_strip(path, real);
	}
	shim_leave(saved);
}
