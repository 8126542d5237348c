// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The private sysfs and /dev tree: real directories and files, so that
 * readdir, openat and the like need no help.  It is built aside and renamed
 * into place, once per fabric.
 *
 * The ibdev directory itself must never change afterwards: libibverbs and
 * librdmacm take its mtime for the identity of the device.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tree.h"

#define TREE_VERSION "2\n" /* raise when files change */
#define VERSION_FILE "sys/version"
#define ASIDE "tree.new"
#define OLD "tree.old"

/* What does not depend on anything. */
static const struct {
	const char *path, *text;
} files[] = {
	{ "sys/class/infiniband_verbs/abi_version", "6\n" },
	{ "sys/class/infiniband_mad/abi_version", "5\n" },
	{ "sys/class/misc/rdma_cm/abi_version", "4\n" },
	{ "sys/class/misc/rdma_cm/dev", "10:60001\n" },
	{ TREE_UVERBS "/abi_version", "1\n" },
	{ TREE_UVERBS "/dev", "231:60000\n" },
	{ TREE_UVERBS "/ibdev", URXE_DEVICE_NAME "\n" },
	{ TREE_UVERBS "/uevent",
	  "MAJOR=231\nMINOR=60000\nDEVNAME=infiniband/" URXE_UVERBS_NAME
	  "\nDEVMODE=0666\n" },
	{ TREE_IBDEV "/board_id", "urxe\n" },
	{ TREE_IBDEV "/hca_type", "urxe\n" },
	{ TREE_IBDEV "/hw_rev", "1\n" },
	{ TREE_IBDEV "/node_desc", "urxe: RDMA in user space\n" },
	{ TREE_IBDEV "/node_type", "1: CA\n" },
	{ TREE_IBDEV "/uevent", "NAME=" URXE_DEVICE_NAME "\n" },
	{ TREE_IBDEV "/device/numa_node", "-1\n" },
	{ TREE_PORT "cap_mask", "0x00010000\n" },
	{ TREE_PORT "lid", "0x0\n" },
	{ TREE_PORT "lid_mask_count", "0\n" },
	{ TREE_PORT "link_layer", "Ethernet\n" },
	{ TREE_PORT "pkeys/0", "0xffff\n" },
	{ TREE_PORT "rate", "200 Gb/sec (4X HDR)\n" },
	{ TREE_PORT "sm_lid", "0x0\n" },
	{ TREE_PORT "sm_sl", "0\n" },
};

static const struct {
	const char *path, *target;
} links[] = {
	{ "sys/class/infiniband/" URXE_DEVICE_NAME,
	  "../../devices/virtual/infiniband/" URXE_DEVICE_NAME },
	{ "sys/class/infiniband_verbs/" URXE_UVERBS_NAME,
	  "../../devices/virtual/infiniband_verbs/" URXE_UVERBS_NAME },
	{ TREE_IBDEV "/subsystem", "../../../../class/infiniband" },
	{ TREE_UVERBS "/subsystem", "../../../../class/infiniband_verbs" },
	{ "dev/char/231:60000", "../infiniband/" URXE_UVERBS_NAME },
};

int tree_put(int dirfd, const char *path, const char *text, mode_t mode)
{
	static const char tmp[] = "put.new";
	size_t len = strlen(text);
	int fd, ret;

	ret = dir_make_parents(dirfd, path);
	if (ret)
		return ret;
	unlinkat(dirfd, tmp, 0);
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len || fchmod(fd, mode & 07777) ||
	    renameat(dirfd, tmp, dirfd, path))
		ret = errno ? -errno : -ENOSPC;
	close(fd);
	return ret;
}

static int tree_make_identity(struct urxe_fabric *f, int dirfd)
{
	const uint64_t g = f->dev->node_guid;
	char text[64];
	int ret;

	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x\n",
		 (unsigned int)(g >> 48), (unsigned int)(g >> 32 & 0xffff),
		 (unsigned int)(g >> 16 & 0xffff), (unsigned int)(g & 0xffff));
	ret = tree_put(dirfd, TREE_IBDEV "/node_guid", text, 0444);
	if (!ret)
		ret = tree_put(dirfd, TREE_IBDEV "/sys_image_guid", text, 0444);
	snprintf(text, sizeof(text), "%.15s\n", f->dev->fw_ver);
	if (!ret)
		ret = tree_put(dirfd, TREE_IBDEV "/fw_ver", text, 0444);
	return ret;
}

static int tree_make_cdev(int dirfd, const char *path, off_t size)
{
	int fd, ret;

	ret = tree_put(dirfd, path, "", 0600);
	if (ret)
		return ret;
	fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, size) || fchmod(fd, TREE_CDEV_MODE & 07777))
		ret = -errno;
	close(fd);
	return ret;
}

static int tree_fill(struct urxe_fabric *f, int dirfd)
{
	unsigned int i;
	int ret;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		ret = tree_put(dirfd, files[i].path, files[i].text, 0444);
		if (ret)
			return ret;
	}
	ret = tree_make_identity(f, dirfd);
	if (!ret)
		ret = tree_make_counters(dirfd);
	if (!ret)
		ret = tree_make_cdev(dirfd, "dev/infiniband/" URXE_UVERBS_NAME,
				     TREE_CDEV_SIZE);
	if (!ret)
		ret = tree_make_cdev(dirfd, "dev/infiniband/rdma_cm",
				     TREE_CM_SIZE);
	if (ret)
		return ret;
	for (i = 0; i < sizeof(links) / sizeof(*links); i++) {
		ret = dir_make_parents(dirfd, links[i].path);
		if (ret)
			return ret;
		if (symlinkat(links[i].target, dirfd, links[i].path))
			return -errno;
	}
	tree_write_gids(f, dirfd);
	/* last: without it the tree counts as absent */
	return tree_put(dirfd, VERSION_FILE, TREE_VERSION, 0444);
}

bool tree_has(int dirfd, const char *path, const char *text)
{
	char now[32];

	file_read(dirfd, path, now, sizeof(now));
	return !strcmp(now, text);
}

/* dev first: who sees sys must find the device's file. */
static int tree_publish(struct urxe_fabric *f)
{
	static const char *const part[] = { "dev", "sys" };
	char from[32];
	unsigned int i;

	mkdirat(f->dirfd, OLD, 0700);
	for (i = 0; i < 2; i++) {
		snprintf(from, sizeof(from), OLD "/%s", part[i]);
		renameat(f->dirfd, part[i], f->dirfd, from);
		snprintf(from, sizeof(from), ASIDE "/%s", part[i]);
		if (renameat(f->dirfd, from, f->dirfd, part[i]))
			return -errno;
	}
	return 0;
}

static int tree_build_locked(struct urxe_fabric *f)
{
	int fd, ret;

	dir_remove(f->dirfd, ASIDE);
	dir_remove(f->dirfd, OLD);
	if (mkdirat(f->dirfd, ASIDE, 0700))
		return -errno;
	fd = openat(f->dirfd, ASIDE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = tree_fill(f, fd);
	close(fd);
	if (!ret)
		ret = tree_publish(f);
	dir_remove(f->dirfd, ASIDE);
	dir_remove(f->dirfd, OLD);
	return ret;
}

int tree_build(struct urxe_fabric *f)
{
	int ret = 0;

	if (tree_has(f->dirfd, VERSION_FILE, TREE_VERSION))
		return 0;
	fabric_refresh_gids(f);
	ret = fabric_lock(f);
	if (ret)
		return ret;
	if (!tree_has(f->dirfd, VERSION_FILE, TREE_VERSION))
		ret = tree_build_locked(f);
	fabric_unlock(f);
	if (ret)
		fabric_fail(-ret, "make the device's files in %s: %s", f->dir,
			    strerror(-ret));
	return ret;
}
