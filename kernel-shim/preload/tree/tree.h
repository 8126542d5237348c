/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The private sysfs and /dev tree in the directory of the fabric.  The path
 * wrappers (wrap/redirect.c) redirect programs to it, and update files that
 * change before a program accesses them.  Any process of the fabric may
 * update the tree; files are replaced atomically by rename(2), except
 * counters.
 *
 *	tree.c	files that do not change, and publication of the tree
 *	pci.c	the PCI functions
 *	gids.c	GIDs, port state, LIDs, network interface, counters
 *	host.c	directories merged with those of the host
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "fabric/fabric.h"

#define TREE_PATH_MAX 600 /* length of a path into the tree, with its NUL */
/*
 * The paths of a device.  tree_expand() inserts its properties, also in the
 * contents of its files: '#' is its number, one digit, '@' its name, '^' its
 * PCI bus, such as 0000:18, and '~' its PCI function, such as 0000:18:00.0.
 */
#define TREE_DEVICE "@"
#define TREE_UVERBS_NAME URXE_UVERBS_NAME "100#"
#define TREE_DEV_NUMBER "231:6000#"
#define TREE_UMAD_NAME "umad5#" /* libibumad finds numbers below 64 */
#define TREE_ISSM_NAME "issm5#"
static_assert(URXE_HOST_HCAS <= 10 && URXE_DEV_INDEX == 1000 &&
		      URXE_DEV_MAJOR == 231 && URXE_DEV_MINOR == 60000,
	      "the names above are those of each device");
/*
 * PCI functions.  Unless a cluster file names others, no real machine has them:
 * pci.c.
 */
#define TREE_OWN_BUS "7578:ff"
#define TREE_PCI_BUS "^"
#define TREE_PCI_NAME "~"
#define TREE_PCI_ROOT "sys/devices/pci" TREE_PCI_BUS
#define TREE_PCI TREE_PCI_ROOT "/" TREE_PCI_NAME
#define TREE_IBDEV TREE_PCI "/infiniband/" TREE_DEVICE
#define TREE_UVERBS TREE_PCI "/infiniband_verbs/" TREE_UVERBS_NAME
#define TREE_PORT TREE_IBDEV "/ports/1/"
#define TREE_UMAD TREE_PCI "/infiniband_mad/" TREE_UMAD_NAME
#define TREE_ISSM TREE_PCI "/infiniband_mad/" TREE_ISSM_NAME

/* Store the path of the directory in which "sys" and "dev" of the host are. */
void tree_path(const struct urxe_fabric *f, char path[TREE_PATH_MAX]);

/*
 * Build the tree, if it does not exist or has another version.  0, or -errno;
 * fabric_why() has the reason.
 */
int tree_build(struct urxe_fabric *f);
/* Write current GIDs and port state to the files, if they have changed. */
void tree_refresh(struct urxe_fabric *f);
/*
 * Write the current value of a port counter to its file.  @path ends in the
 * name of the file; if it is no counter, do nothing.
 */
void tree_refresh_counter(struct urxe_fabric *f, const char *path);
/*
 * Update the merged directory for @path, such as "/sys/class/infiniband":
 * entries of the host and of the emulated device.
 */
void tree_merge_host(struct urxe_fabric *f, const char *path);

/* Internal to these files ---------------------------------------------- */

/* Store a temporary file name with prefix @what, unique to this thread. */
void tree_own_name(char name[48], const char *what);
/*
 * Create or replace a file, atomically by rename(2).  Missing parent
 * directories are created.  0, or -errno; the same for tree_link().
 */
int tree_put(int dirfd, const char *path, const char *text, mode_t mode);
int tree_put_bytes(int dirfd, const char *path, const void *data, size_t len,
		   mode_t mode);
/* Make @path a hard link to file @to. */
int tree_link(int dirfd, const char *path, const char *to);
/* Return true if the contents of the file are @text (at most 31 bytes). */
bool tree_has(int dirfd, const char *path, const char *text);
/* A device, and the tree that its files are in. */
struct tree_at {
	int dirfd;
	uint32_t k; /* its number among the devices of the host */
	const struct urxe_hca *hca;
	char device[16], bus[12], pci[20];
};
struct tree_at tree_at(const struct urxe_fabric *f, int dirfd, uint32_t k);
/* Copy a path or text of a device (see TREE_DEVICE). */
void tree_expand(char *out, size_t room, const char *in,
		 const struct tree_at *t);
/* tree_put() for a file of a device, whose path and text are expanded. */
int tree_put_of(const struct tree_at *t, const char *path, const char *text,
		mode_t mode);
/* The same, but the text is stored as it is. */
int tree_put_text(const struct tree_at *t, const char *path, const char *text);
/* Create the files of the PCI function of a device: 0, or -errno. */
int tree_make_pci(const struct tree_at *t);
/*
 * Write the files for port states, and for GIDs and interface of device 0,
 * then the stamp.  @all: also those of the other devices, whose GIDs do not
 * change.
 */
void tree_write_gids(struct urxe_fabric *f, int dirfd, bool all);
/* Create the files of all counters of a device: 0, or -errno. */
int tree_make_counters(const struct tree_at *t);
/*
 * The directory of the host's tree: that of the fabric, or for other hosts than
 * the first a subdirectory.  tree_dirfd_put() ends its use.  -errno
 */
int tree_dirfd(const struct urxe_fabric *f);
void tree_dirfd_put(const struct urxe_fabric *f, int fd);
