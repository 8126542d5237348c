// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which paths lead into the fabric's private tree.
 *
 * Absolute paths under the prefixes below, with "//" and "/./" squeezed out,
 * become the same path under the fabric's directory.  With the host's
 * devices shown, and where they always are, a path that the tree does not have
 * stays what it is, and a class directory itself becomes one that lists both.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "redirect.h"

enum prefix_kind {
	OURS, /* all of it */
	CLASS, /* a directory in which the host has entries, too */
	SHARED, /* one where the host's are never hidden */
};

static const struct {
	const char *path;
	enum prefix_kind kind;
} prefixes[] = {
	{ "/sys/class/infiniband", CLASS },
	{ "/sys/class/infiniband_verbs", CLASS },
	{ "/sys/class/infiniband_mad", CLASS },
	{ "/sys/class/pci_bus/" TREE_PCI_BUS, OURS },
	{ "/sys/bus/pci/devices", SHARED },
	{ "/sys/bus/pci/drivers/urxe", OURS },
	{ "/" TREE_PCI_ROOT, OURS },
	{ "/dev/infiniband", CLASS },
	{ "/dev/char/231:60000", OURS },
	{ "/sys/class/misc/rdma_cm", OURS },
};
#define PREFIXES (sizeof(prefixes) / sizeof(*prefixes))

/* Squeeze into out; false if it is too long.  ".." is left to the kernel. */
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

static int redirect_prefix(const char *path)
{
	unsigned int i;
	size_t n;

	for (i = 0; i < PREFIXES; i++) {
		n = strlen(prefixes[i].path);
		if (!strncmp(path, prefixes[i].path, n) &&
		    (path[n] == '/' || !path[n]))
			return (int)i;
	}
	return -1;
}

/* Things that must be current before somebody looks at them. */
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
	bool shared = shim_with_host() || kind == SHARED;
	struct urxe_fabric *f = shim_fabric();

	if (f)
		redirect_prepare(f, norm);
	if (strstr(norm, "/rdma_cm") && shim_host_cm())
		return path;
	if (f && shared && kind != OURS &&
	    (!*rest || !strcmp(rest, "/"))) {
		tree_merge_host(f, prefixes[prefix].path);
		snprintf(buf, TREE_PATH_MAX, "%s/host%s", shim_dir(), norm);
		return buf;
	}
	/* without a fabric this names nothing, which hides the host's */
	if (snprintf(buf, TREE_PATH_MAX, "%s%s", shim_dir(), norm) >=
	    TREE_PATH_MAX)
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
	char real[300];
	int saved = shim_enter();

	if (f && !redirect_strip(path, f->dir)) {
		/* URXE_DIR may go through links, realpath's answer does not */
		file_path(f->dirfd, real, sizeof(real));
		redirect_strip(path, real);
	}
	shim_leave(saved);
}
