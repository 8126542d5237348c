// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The private sysfs and /dev tree in the directory of the fabric.  It has
 * real directories and files, so that readdir, openat and the like need no
 * emulation.
 *
 * Each process that finds no tree builds one in a temporary directory of its
 * own.  The first one that is complete is published under the fabric's lock
 * by rename(2), and counted in urxe_dev.tree_made.  Trees that were built
 * meanwhile are removed.
 *
 * The ibdev directory itself must not change after that: libibverbs and
 * librdmacm use its mtime to identify the device.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/profile.h"
#include "tree.h"

#define TREE_VERSION "8\n" /* increment when files change */
#define VERSION_FILE "sys/version"
#define ASIDE "tree." /* temporary directory: + process id + thread */

/* The PCI function, relative to a directory such as sys/class/infiniband. */
#define CLASS_TO_PCI "../../devices/pci" TREE_PCI_BUS "/" TREE_PCI_NAME

struct tree_file {
	const char *path, *text;
};

/* Files with constant contents. */
static const struct tree_file files[] = {
	{ "sys/class/infiniband_verbs/abi_version", "6\n" },
	{ "sys/class/infiniband_mad/abi_version", "5\n" },
	{ "sys/class/misc/rdma_cm/abi_version", "4\n" },
	{ "sys/class/misc/rdma_cm/dev", "10:60001\n" },
	{ NULL, NULL },
};

/* Those of each device. */
static const struct tree_file device_files[] = {
	{ TREE_UVERBS "/abi_version", "1\n" },
	{ TREE_UVERBS "/dev", TREE_DEV_NUMBER "\n" },
	{ TREE_UVERBS "/ibdev", TREE_DEVICE "\n" },
	{ TREE_UVERBS "/uevent",
	  "MAJOR=231\nMINOR=6000#\nDEVNAME=infiniband/" TREE_UVERBS_NAME
	  "\nDEVMODE=0666\n" },
	{ TREE_IBDEV "/hca_type", "urxe\n" },
	{ TREE_IBDEV "/node_desc", "urxe: RDMA in user space\n" },
	{ TREE_IBDEV "/node_type", "1: CA\n" },
	{ TREE_IBDEV "/uevent", "NAME=" TREE_DEVICE "\n" },
	{ NULL, NULL },
};

/* Those of each InfiniBand device. */
static const struct tree_file infiniband_files[] = {
	{ TREE_UMAD "/dev", "231:5#\n" },
	{ TREE_UMAD "/ibdev", TREE_DEVICE "\n" },
	{ TREE_UMAD "/port", "1\n" },
	{ TREE_ISSM "/ibdev", TREE_DEVICE "\n" },
	{ TREE_ISSM "/port", "1\n" },
	{ NULL, NULL },
};

static const struct tree_file infiniband_links[] = {
	{ "sys/class/infiniband_mad/" TREE_UMAD_NAME,
	  CLASS_TO_PCI "/infiniband_mad/" TREE_UMAD_NAME },
	{ "sys/class/infiniband_mad/" TREE_ISSM_NAME,
	  CLASS_TO_PCI "/infiniband_mad/" TREE_ISSM_NAME },
	{ TREE_UMAD "/subsystem", "../../../../../class/infiniband_mad" },
	{ TREE_ISSM "/subsystem", "../../../../../class/infiniband_mad" },
	{ TREE_UMAD "/device", "../../../" TREE_PCI_NAME },
	{ TREE_ISSM "/device", "../../../" TREE_PCI_NAME },
	{ NULL, NULL },
};

/* Symbolic links: path and target. */
static const struct tree_file links[] = {
	{ "sys/class/pci_bus/" TREE_PCI_BUS,
	  "../../devices/pci" TREE_PCI_BUS "/pci_bus/" TREE_PCI_BUS },
	{ TREE_PCI_ROOT "/pci_bus/" TREE_PCI_BUS "/device",
	  "../../../pci" TREE_PCI_BUS },
	{ NULL, NULL },
};

/* Those of each device. */
static const struct tree_file device_links[] = {
	{ "sys/class/infiniband/" TREE_DEVICE,
	  CLASS_TO_PCI "/infiniband/" TREE_DEVICE },
	{ "sys/class/infiniband_verbs/" TREE_UVERBS_NAME,
	  CLASS_TO_PCI "/infiniband_verbs/" TREE_UVERBS_NAME },
	{ "sys/bus/pci/devices/" TREE_PCI_NAME, "../" CLASS_TO_PCI },
	{ "sys/bus/pci/drivers/urxe/" TREE_PCI_NAME, "../../" CLASS_TO_PCI },
	{ TREE_IBDEV "/subsystem", "../../../../../class/infiniband" },
	{ TREE_IBDEV "/device", "../../../" TREE_PCI_NAME },
	{ TREE_UVERBS "/subsystem", "../../../../../class/infiniband_verbs" },
	{ TREE_UVERBS "/device", "../../../" TREE_PCI_NAME },
	{ TREE_PCI "/subsystem", "../../../bus/pci" },
	{ TREE_PCI "/driver", "../../../bus/pci/drivers/urxe" },
	{ "dev/char/" TREE_DEV_NUMBER, "../infiniband/" TREE_UVERBS_NAME },
	{ NULL, NULL },
};

void tree_own_name(char name[48], const char *what)
{
	snprintf(name, 48, "%.16s%d.%lx", what, (int)getpid(),
		 (unsigned long)pthread_self());
}

/*
 * Rename @tmp to @path, which is replaced.  Create parent directories if
 * necessary.
 */
static int tree_move(int dirfd, const char *tmp, const char *path)
{
	int ret = renameat(dirfd, tmp, dirfd, path) ? -errno : 0;

	if (ret != -ENOENT)
		return ret;
	ret = dir_make_parents(dirfd, path);
	if (!ret && renameat(dirfd, tmp, dirfd, path))
		ret = -errno;
	return ret;
}

int tree_link(int dirfd, const char *path, const char *to)
{
	char tmp[48];
	int ret;

	tree_own_name(tmp, ".put.");
	unlinkat(dirfd, tmp, 0);
	if (linkat(dirfd, to, dirfd, tmp, 0))
		return -errno;
	ret = tree_move(dirfd, tmp, path);
	/* rename(2) does nothing if both names are the same file */
	unlinkat(dirfd, tmp, 0);
	return ret;
}

int tree_put(int dirfd, const char *path, const char *text, mode_t mode)
{
	return tree_put_bytes(dirfd, path, text, strlen(text), mode);
}

int tree_put_bytes(int dirfd, const char *path, const void *data, size_t len,
		   mode_t mode)
{
	char tmp[48];
	int fd, ret = 0;

	tree_own_name(tmp, ".put.");
	unlinkat(dirfd, tmp, 0);
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, data, len) != (ssize_t)len || fchmod(fd, mode & 07777))
		ret = errno ? -errno : -ENOSPC;
	close(fd);
	if (!ret)
		ret = tree_move(dirfd, tmp, path);
	return ret;
}

void tree_expand(char *out, size_t room, const char *in, uint32_t k)
{
	const size_t n = strnlen(in, room - 1);
	char *p = out;

	memcpy(out, in, n);
	out[n] = 0;
	while ((p = strchr(p, '#')))
		*p++ = (char)('0' + k);
}

int tree_put_of(int dirfd, uint32_t k, const char *path, const char *text,
		mode_t mode)
{
	char own_path[TREE_PATH_MAX], own_text[256];

	tree_expand(own_path, sizeof(own_path), path, k);
	tree_expand(own_text, sizeof(own_text), text, k);
	return tree_put(dirfd, own_path, own_text, mode);
}

static int tree_make_identity(struct urxe_fabric *f, int dirfd, uint32_t k)
{
	const uint64_t g = f->dev->hca[k].node_guid;
	char text[64];
	int ret;

	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x\n",
		 (unsigned int)(g >> 48), (unsigned int)(g >> 32 & 0xffff),
		 (unsigned int)(g >> 16 & 0xffff), (unsigned int)(g & 0xffff));
	ret = tree_put_of(dirfd, k, TREE_IBDEV "/node_guid", text, 0444);
	if (!ret)
		ret = tree_put_of(dirfd, k, TREE_IBDEV "/sys_image_guid", text,
				  0444);
	return ret;
}

/* Files that show the profile and the link layer of the device. */
static int tree_make_profile(struct urxe_fabric *f, int dirfd, uint32_t k)
{
	struct urxe_profile p;
	char text[128];
	int ret;

	snprintf(text, sizeof(text), "%s\n", hca_link_layer(&f->dev->hca[k]));
	ret = tree_put_of(dirfd, k, TREE_PORT "link_layer", text, 0444);
	if (ret)
		return ret;
	profile_copy(&p, &f->dev->hca[k].profile);
	snprintf(text, sizeof(text), "%s\n", p.fw_ver);
	ret = tree_put_of(dirfd, k, TREE_IBDEV "/fw_ver", text, 0444);
	snprintf(text, sizeof(text), "%s\n",
		 p.board_id[0] ? p.board_id : "urxe");
	if (!ret)
		ret = tree_put_of(dirfd, k, TREE_IBDEV "/board_id", text, 0444);
	snprintf(text, sizeof(text), "%llx\n",
		 (unsigned long long)p.value[PROFILE_hw_ver]);
	if (!ret)
		ret = tree_put_of(dirfd, k, TREE_IBDEV "/hw_rev", text, 0444);
	rate_print(&p, text, sizeof(text));
	if (!ret)
		ret = tree_put_of(dirfd, k, TREE_PORT "rate", text, 0444);
	return ret;
}

/* Create a stand-in for a character device; mode and size identify it. */
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

/* Create files of @list, of device @k: 0, or -errno. */
static int tree_make_files(int dirfd, const struct tree_file *list, uint32_t k)
{
	int ret = 0;

	for (; list->path && !ret; list++)
		ret = tree_put_of(dirfd, k, list->path, list->text, 0444);
	return ret;
}

static int tree_make_links(int dirfd, const struct tree_file *list, uint32_t k)
{
	char path[TREE_PATH_MAX], target[TREE_PATH_MAX];
	int ret;

	for (; list->path; list++) {
		tree_expand(path, sizeof(path), list->path, k);
		tree_expand(target, sizeof(target), list->text, k);
		ret = dir_make_parents(dirfd, path);
		if (ret)
			return ret;
		if (symlinkat(target, dirfd, path))
			return -errno;
	}
	return 0;
}

/* The devices for MADs, and the name of the node. */
static int tree_fill_infiniband(int dirfd, uint32_t k)
{
	char path[64], text[65];
	int ret = tree_make_files(dirfd, infiniband_files, k);

	snprintf(text, sizeof(text), "231:%u\n",
		 URXE_UMAD_MINOR + URXE_MAX_HCA + k);
	if (!ret)
		ret = tree_put_of(dirfd, k, TREE_ISSM "/dev", text, 0444);
	subnet_node_name(text, (int)k);
	strcat(text, "\n");
	if (!ret)
		ret = tree_put_of(dirfd, k, TREE_IBDEV "/node_desc", text,
				  0644);
	tree_expand(path, sizeof(path), "dev/infiniband/" TREE_UMAD_NAME, k);
	if (!ret)
		ret = tree_make_cdev(dirfd, path, TREE_UMAD_SIZE + (off_t)k);
	tree_expand(path, sizeof(path), "dev/infiniband/" TREE_ISSM_NAME, k);
	if (!ret)
		ret = tree_make_cdev(dirfd, path, TREE_ISSM_SIZE + (off_t)k);
	return ret ? ret : tree_make_links(dirfd, infiniband_links, k);
}

static int tree_fill_device(struct urxe_fabric *f, int dirfd, uint32_t k)
{
	char cdev[64];
	int ret;

	tree_expand(cdev, sizeof(cdev), "dev/infiniband/" TREE_UVERBS_NAME, k);
	ret = tree_make_files(dirfd, device_files, k);
	if (!ret)
		ret = tree_make_identity(f, dirfd, k);
	if (!ret)
		ret = tree_make_profile(f, dirfd, k);
	if (!ret)
		ret = tree_make_pci(dirfd, k);
	if (!ret)
		ret = tree_make_counters(dirfd, k);
	if (!ret)
		ret = tree_make_cdev(dirfd, cdev, TREE_CDEV_SIZE + (off_t)k);
	if (!ret)
		ret = tree_make_links(dirfd, device_links, k);
	if (!ret && f->dev->hca[k].infiniband)
		ret = tree_fill_infiniband(dirfd, k);
	return ret;
}

static int tree_fill(struct urxe_fabric *f, int dirfd)
{
	uint32_t k;
	int ret;

	ret = tree_make_files(dirfd, files, 0);
	for (k = 0; k < f->hcas && !ret; k++)
		ret = tree_fill_device(f, dirfd, k);
	if (!ret)
		ret = tree_make_cdev(dirfd, "dev/infiniband/rdma_cm",
				     TREE_CM_SIZE);
	if (!ret)
		ret = tree_make_links(dirfd, links, 0);
	if (ret)
		return ret;
	tree_write_gids(f, dirfd, true);
	/* last: a tree without this file is incomplete */
	return tree_put(dirfd, VERSION_FILE, TREE_VERSION, 0444);
}

bool tree_has(int dirfd, const char *path, const char *text)
{
	char now[32];

	file_read(dirfd, path, now, sizeof(now));
	return !strcmp(now, text);
}

/*
 * Exchange the published tree, if there is one, with the new one in @aside.
 * "dev" is first: a program that finds the device in "sys" must be able to
 * open it.
 */
static int tree_swap(struct urxe_fabric *f, int aside)
{
	static const char *const part[] = { "dev", "sys" };
	char old[16];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		snprintf(old, sizeof(old), "old.%s", part[i]);
		renameat(f->dirfd, part[i], aside, old);
		if (renameat(aside, part[i], f->dirfd, part[i]))
			return -errno;
	}
	return 0;
}

/*
 * Publish the tree in @aside, unless another process or thread has published
 * one since @made was loaded.
 */
static int tree_publish(struct urxe_fabric *f, int aside, uint32_t made)
{
	int ret = fabric_lock(f);

	if (ret)
		return ret;
	if (load_relaxed(&f->dev->tree_made) == made) {
		ret = tree_swap(f, aside);
		store_relaxed(&f->dev->tree_made, made + 1);
	}
	fabric_unlock(f);
	return ret;
}

/*
 * Remove the temporary directories of dead processes, which died while they
 * built or removed a tree.
 */
static void tree_drop_stale(struct urxe_fabric *f)
{
	DIR *dir = dir_open(f->dirfd, ".");
	const size_t n = strlen(ASIDE);
	struct dirent *de;

	while (dir && (de = readdir(dir)))
		if (!strncmp(de->d_name, ASIDE, n) &&
		    process_is_dead(f, strtoul(de->d_name + n, NULL, 16)))
			dir_remove(f->dirfd, de->d_name);
	if (dir)
		closedir(dir);
}

/*
 * Build a tree and publish it.  Then remove the temporary directory, with the
 * tree that it replaced, or that came too late.
 */
static int tree_make(struct urxe_fabric *f, uint32_t made)
{
	char aside[64];
	int fd, ret;

	snprintf(aside, sizeof(aside), ASIDE "%x.%lx", process_id(f),
		 (unsigned long)pthread_self());
	if (mkdirat(f->dirfd, aside, 0700))
		return -errno;
	fd = openat(f->dirfd, aside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = fd < 0 ? -errno : tree_fill(f, fd);
	if (!ret)
		ret = tree_publish(f, fd, made);
	if (fd >= 0)
		close(fd);
	dir_remove(f->dirfd, aside);
	return ret;
}

int tree_build(struct urxe_fabric *f)
{
	uint32_t made = load_relaxed(&f->dev->tree_made);
	int ret;

	tree_drop_stale(f);
	if (tree_has(f->dirfd, VERSION_FILE, TREE_VERSION))
		return 0;
	fabric_refresh_gids(f);
	fabric_why_clear();
	ret = tree_make(f, made);
	if (ret && !fabric_why()[0])
		fabric_fail(-ret, "cannot create the sysfs tree in %s: %s",
			    f->dir, strerror(-ret));
	return ret;
}
