/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The private sysfs and /dev tree in the fabric's directory. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "fabric/fabric.h"

#define TREE_PATH_MAX 600 /* of a path into the tree, with its NUL */
/* A PCI function that no machine has: see pci.c */
#define TREE_PCI_BUS "7578:ff"
#define TREE_PCI_NAME TREE_PCI_BUS ":00.0"
#define TREE_PCI_ROOT "sys/devices/pci" TREE_PCI_BUS
#define TREE_PCI TREE_PCI_ROOT "/" TREE_PCI_NAME
#define TREE_IBDEV TREE_PCI "/infiniband/" URXE_DEVICE_NAME
#define TREE_UVERBS TREE_PCI "/infiniband_verbs/" URXE_UVERBS_NAME
#define TREE_PORT TREE_IBDEV "/ports/1/"

/* Make the tree if it is not there. */
int tree_build(struct urxe_fabric *f);
/* Current GIDs and port state into the files, if they changed. */
void tree_refresh(struct urxe_fabric *f);
/* The current value of a port counter into its file. */
void tree_refresh_counter(struct urxe_fabric *f, const char *path);
/*
 * A class directory with the host's entries next to ours, for a path such as
 * "/sys/class/infiniband".
 */
void tree_merge_host(struct urxe_fabric *f, const char *path);

/* Between the files here ----------------------------------------------- */

/* A name for what is not in its place yet, that nobody else uses. */
void tree_own_name(char name[48], const char *what);
/* Make or replace one file. */
int tree_put(int dirfd, const char *path, const char *text, mode_t mode);
int tree_put_bytes(int dirfd, const char *path, const void *data, size_t len,
		   mode_t mode);
/* The same as a further name of file `to`. */
int tree_link(int dirfd, const char *path, const char *to);
/* Is that what the file says? */
bool tree_has(int dirfd, const char *path, const char *text);
/* The PCI function's files. */
int tree_make_pci(struct urxe_fabric *f, int dirfd);
void tree_write_gids(struct urxe_fabric *f, int dirfd);
/* Every counter's file, at build time. */
int tree_make_counters(int dirfd);
