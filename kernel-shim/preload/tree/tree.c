// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The private sysfs and /dev tree in the directory of the fabric.  It has
 * real directories and files, so that readdir, openat and the like need no
 * emulation.
 *
 * Each process that finds no tree builds one in a temporary directory of its
 * own.  The first one that is complete is published under the fabric's lock
 * by rename(2), and counted in urxe_host.tree_made.  Trees that were built
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

#define TREE_VERSION "9\n" /* increment when files change */
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

/* Symbolic links of each device: path and target. */
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
	/* several devices may be on one bus */
	{ "sys/class/pci_bus/" TREE_PCI_BUS,
	  "../../devices/pci" TREE_PCI_BUS "/pci_bus/" TREE_PCI_BUS },
	{ TREE_PCI_ROOT "/pci_bus/" TREE_PCI_BUS "/device",
	  "../../../pci" TREE_PCI_BUS },
	{ NULL, NULL },
};

void tree_own_name(char name[48], const char *what)
{
	snprintf(name, 48, "%.16s%d.%lx", what, (int)getpid(),
		 (unsigned long)pthread_self());
}

/* Rename @from to @to, which is replaced, or link it, if @to does not exist. */
static int tree_name(int dirfd, const char *from, const char *to, bool link)
{
	const int err = link ? linkat(dirfd, from, dirfd, to, 0) :
			       renameat(dirfd, from, dirfd, to);

	return err ? -errno : 0;
}

/* The same.  Create parent directories if necessary. */
static int tree_place(int dirfd, const char *from, const char *to, bool link)
{
	int ret = tree_name(dirfd, from, to, link);

	if (ret != -ENOENT)
		return ret;
	ret = dir_make_parents(dirfd, to);
	return ret ? ret : tree_name(dirfd, from, to, link);
}

int tree_link(int dirfd, const char *path, const char *to)
{
	char tmp[48];
	int ret = tree_place(dirfd, to, path, true);

	if (ret != -EEXIST)
		return ret;
	tree_own_name(tmp, ".put.");
	unlinkat(dirfd, tmp, 0);
	ret = tree_name(dirfd, to, tmp, true);
	if (ret)
		return ret;
	ret = tree_place(dirfd, tmp, path, false);
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
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	char tmp[48];
	int fd, ret = 0;

	tree_own_name(tmp, ".put.");
	fd = openat(dirfd, tmp, flags, 0600);
	if (fd < 0 && errno == EEXIST && !unlinkat(dirfd, tmp, 0))
		fd = openat(dirfd, tmp, flags, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, data, len) != (ssize_t)len || fchmod(fd, mode & 07777))
		ret = errno ? -errno : -ENOSPC;
	close(fd);
	if (!ret)
		ret = tree_place(dirfd, tmp, path, false);
	return ret;
}

struct tree_at tree_at(const struct urxe_fabric *f, int dirfd, uint32_t k)
{
	struct tree_at t = { .dirfd = dirfd, .k = k, .hca = fabric_hca(f, k) };
	const uint32_t pci = t.hca->pci;

	snprintf(t.device, sizeof(t.device), "%.15s", t.hca->name);
	snprintf(t.bus, sizeof(t.bus), "%04x:%02x", pci >> 16, pci >> 8 & 0xff);
	snprintf(t.pci, sizeof(t.pci), "%s:%02x.%x", t.bus, pci >> 3 & 31,
		 pci & 7);
	return t;
}

void tree_expand(char *out, size_t room, const char *in,
		 const struct tree_at *t)
{
	const char digit[2] = { (char)('0' + t->k) };
	const char *with;
	size_t n = 0, len;

	for (; *in && n < room - 1; in++) {
		with = *in == '#' ? digit :
		       *in == '@' ? t->device :
		       *in == '^' ? t->bus :
		       *in == '~' ? t->pci :
				    NULL;
		len = with ? strlen(with) : 1;
		if (len > room - 1 - n)
			break;
		memcpy(out + n, with ? with : in, len);
		n += len;
	}
	out[n] = '\0';
}

int tree_put_of(const struct tree_at *t, const char *path, const char *text,
		mode_t mode)
{
	char own_path[TREE_PATH_MAX], own_text[256];

	tree_expand(own_path, sizeof(own_path), path, t);
	tree_expand(own_text, sizeof(own_text), text, t);
	return tree_put(t->dirfd, own_path, own_text, mode);
}

int tree_put_text(const struct tree_at *t, const char *path, const char *text)
{
	char own_path[TREE_PATH_MAX];

	tree_expand(own_path, sizeof(own_path), path, t);
	return tree_put(t->dirfd, own_path, text, 0444);
}

/* ------------------------------------------------------- the host's tree */

void tree_path(const struct urxe_fabric *f, char path[TREE_PATH_MAX])
{
	if (f->host)
		snprintf(path, TREE_PATH_MAX, "%s/host.%u", f->dir, f->host);
	else
		snprintf(path, TREE_PATH_MAX, "%s", f->dir);
}

int tree_dirfd(const struct urxe_fabric *f)
{
	char name[32];
	int fd;

	if (!f->host)
		return f->dirfd;
	snprintf(name, sizeof(name), "host.%u", f->host);
	if (mkdirat(f->dirfd, name, 0700) && errno != EEXIST)
		return -errno;
	fd = openat(f->dirfd, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void tree_dirfd_put(const struct urxe_fabric *f, int fd)
{
	if (fd >= 0 && fd != f->dirfd)
		close(fd);
}

static int tree_make_identity(const struct tree_at *t)
{
	const uint64_t g = t->hca->node_guid;
	char text[64];
	int ret;

	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x\n",
		 (unsigned int)(g >> 48), (unsigned int)(g >> 32 & 0xffff),
		 (unsigned int)(g >> 16 & 0xffff), (unsigned int)(g & 0xffff));
	ret = tree_put_of(t, TREE_IBDEV "/node_guid", text, 0444);
	if (!ret)
		ret = tree_put_of(t, TREE_IBDEV "/sys_image_guid", text, 0444);
	return ret;
}

/* Files that show the profile and the link layer of the device. */
static int tree_make_profile(const struct tree_at *t)
{
	struct urxe_profile p;
	char text[128];
	int ret;

	snprintf(text, sizeof(text), "%s\n", hca_link_layer(t->hca));
	ret = tree_put_of(t, TREE_PORT "link_layer", text, 0444);
	if (ret)
		return ret;
	profile_copy(&p, &t->hca->profile);
	snprintf(text, sizeof(text), "%s\n", p.fw_ver);
	ret = tree_put_text(t, TREE_IBDEV "/fw_ver", text);
	snprintf(text, sizeof(text), "%s\n",
		 p.board_id[0] ? p.board_id : "urxe");
	if (!ret)
		ret = tree_put_text(t, TREE_IBDEV "/board_id", text);
	snprintf(text, sizeof(text), "%llx\n",
		 (unsigned long long)p.value[PROFILE_hw_ver]);
	if (!ret)
		ret = tree_put_of(t, TREE_IBDEV "/hw_rev", text, 0444);
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

/* Create files of @list, of a device: 0, or -errno. */
static int tree_make_files(const struct tree_at *t,
			   const struct tree_file *list)
{
	int ret = 0;

	for (; list->path && !ret; list++)
		ret = tree_put_of(t, list->path, list->text, 0444);
	return ret;
}

static int tree_make_links(const struct tree_at *t,
			   const struct tree_file *list)
{
	char path[TREE_PATH_MAX], target[TREE_PATH_MAX];
	int ret;

	for (; list->path; list++) {
		tree_expand(path, sizeof(path), list->path, t);
		tree_expand(target, sizeof(target), list->text, t);
		ret = dir_make_parents(t->dirfd, path);
		if (ret)
			return ret;
		if (symlinkat(target, t->dirfd, path) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* The devices for MADs, and the name of the node. */
static int tree_fill_infiniband(const struct urxe_dev *dev,
				const struct tree_at *t)
{
	char path[64], text[80];
	int ret = tree_make_files(t, infiniband_files);

	snprintf(text, sizeof(text), "231:%u\n",
		 URXE_UMAD_MINOR + URXE_HOST_HCAS + t->k);
	if (!ret)
		ret = tree_put_of(t, TREE_ISSM "/dev", text, 0444);
	subnet_node_name(dev, text, hca_index(dev, t->hca));
	strcat(text, "\n");
	if (!ret)
		ret = tree_put_of(t, TREE_IBDEV "/node_desc", text, 0644);
	tree_expand(path, sizeof(path), "dev/infiniband/" TREE_UMAD_NAME, t);
	if (!ret)
		ret = tree_make_cdev(t->dirfd, path,
				     TREE_UMAD_SIZE + (off_t)t->k);
	tree_expand(path, sizeof(path), "dev/infiniband/" TREE_ISSM_NAME, t);
	if (!ret)
		ret = tree_make_cdev(t->dirfd, path,
				     TREE_ISSM_SIZE + (off_t)t->k);
	return ret ? ret : tree_make_links(t, infiniband_links);
}

static int tree_fill_device(const struct urxe_dev *dev, const struct tree_at *t)
{
	char cdev[64];
	int ret;

	tree_expand(cdev, sizeof(cdev), "dev/infiniband/" TREE_UVERBS_NAME, t);
	ret = tree_make_files(t, device_files);
	if (!ret)
		ret = tree_make_identity(t);
	if (!ret)
		ret = tree_make_profile(t);
	if (!ret)
		ret = tree_make_pci(t);
	if (!ret)
		ret = tree_make_counters(t);
	if (!ret)
		ret = tree_make_cdev(t->dirfd, cdev,
				     TREE_CDEV_SIZE + (off_t)t->k);
	if (!ret)
		ret = tree_make_links(t, device_links);
	if (!ret && t->hca->infiniband)
		ret = tree_fill_infiniband(dev, t);
	return ret;
}

static int tree_fill(struct urxe_fabric *f, int dirfd)
{
	struct tree_at t = tree_at(f, dirfd, 0);
	uint32_t k;
	int ret;

	ret = tree_make_files(&t, files);
	for (k = 0; k < f->hcas && !ret; k++) {
		t = tree_at(f, dirfd, k);
		ret = tree_fill_device(f->dev, &t);
	}
	if (!ret)
		ret = tree_make_cdev(dirfd, "dev/infiniband/rdma_cm",
				     TREE_CM_SIZE);
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
static int tree_swap(int to, int aside)
{
	static const char *const part[] = { "dev", "sys" };
	char old[16];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		snprintf(old, sizeof(old), "old.%s", part[i]);
		renameat(to, part[i], aside, old);
		if (renameat(aside, part[i], to, part[i]))
			return -errno;
	}
	return 0;
}

static _Atomic uint32_t *tree_made(const struct urxe_fabric *f)
{
	return &f->dev->host[f->host].tree_made;
}

/*
 * Publish the tree in @aside, unless another process or thread has published
 * one since @made was loaded.
 */
static int tree_publish(struct urxe_fabric *f, int to, int aside, uint32_t made)
{
	int ret = fabric_lock(f);

	if (ret)
		return ret;
	if (load_relaxed(tree_made(f)) == made) {
		ret = tree_swap(to, aside);
		store_relaxed(tree_made(f), made + 1);
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
static int tree_make(struct urxe_fabric *f, int to, uint32_t made)
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
		ret = tree_publish(f, to, fd, made);
	if (fd >= 0)
		close(fd);
	dir_remove(f->dirfd, aside);
	return ret;
}

int tree_build(struct urxe_fabric *f)
{
	uint32_t made = load_relaxed(tree_made(f));
	int to, ret;

	tree_drop_stale(f);
	to = tree_dirfd(f);
	if (to >= 0 && tree_has(to, VERSION_FILE, TREE_VERSION)) {
		tree_dirfd_put(f, to);
		return 0;
	}
	fabric_refresh_gids(f);
	fabric_why_clear();
	ret = to < 0 ? to : tree_make(f, to, made);
	tree_dirfd_put(f, to);
	if (ret && !fabric_why()[0])
		fabric_fail(-ret, "cannot create the sysfs tree in %s: %s",
			    f->dir, strerror(-ret));
	return ret;
}
