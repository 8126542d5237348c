/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Functions that only the files of kernel-shim/fabric call. */
#pragma once

#include "fabric.h"

/* Give a new arena file its size and header.  -errno */
int arena_init(int fd, uint32_t slot, uint32_t gen, uint32_t hca,
	       const char comm[16]);
/*
 * Make another slot with the pages of the allocation `made` of a slot, for an
 * MR of context ctx.  dm_heap_put() of the MR frees it.  Returns the slot.
 * -ENOENT: the allocation was freed; or another error.
 */
int dm_heap_share(struct urxe_fabric *f, uint32_t slot, uint32_t made,
		  uint32_t ctx, uint32_t ctx_gen);
/* Free the device memory in slot, whose context is dead.  -errno */
int dm_heap_reclaim(struct urxe_fabric *f, uint32_t slot);
/* Under the device lock, after its holder died: rebuild dm_map from dm[]. */
void dm_heap_recover(struct urxe_fabric *f);
/* Remove the heap's file if it is on a hugetlbfs.  It must not be in use. */
void dm_heap_remove(struct urxe_dev *dev);

/*
 * profile.c: read a text file of less than @most bytes into @text, which has
 * one byte more.  @what: what it is, for fabric_why().  -errno
 */
int text_read(const char *path, const char *what, char *text, size_t most);

/* The words of a line of a profile or of a cluster file. */
#define LINE_WORDS 64
struct line {
	char *word[LINE_WORDS];
	unsigned int n;
};
/* profile.c: split a line, up to the comment, into words.  -EINVAL: too many */
int line_split(struct line *l, char *text);
/* profile.c: a decimal number, or a hexadecimal one after 0x.  -EINVAL */
int word_number(const char *word, uint64_t *value);

struct cluster;
/*
 * hca.c: what a new fabric gets, by the environment.  cluster_free() frees it.
 * -errno with fabric_why(): the environment, a profile or the cluster file is
 * invalid
 */
int cluster_by_env(struct cluster *c);
/*
 * Initialize devices, hosts and switches of a new segment; the GUID of the
 * first device is guid.  -EINVAL: URXE_SM is invalid
 */
int hcas_init(struct urxe_dev *dev, const struct cluster *c, uint64_t guid);
/*
 * 1 if the fabric is that of URXE_CLUSTER, or has URXE_DEVICES devices
 * (default: one) with the profiles of URXE_PROFILE (default: none) and the link
 * layers of URXE_LINK_LAYER (default: Ethernet), 0 if not; -errno: these are
 * invalid.
 */
int hcas_are_wanted(const struct urxe_fabric *f);
/*
 * -EINVAL or another error: URXE_DEVICES, URXE_PROFILE or URXE_LINK_LAYER is
 * invalid, or does not describe the devices of the fabric.
 */
int hcas_agree(const struct urxe_fabric *f);
/*
 * Copy the word for device k from a list separated by commas, whose last word
 * applies to the remaining devices.  False: it is empty or too long.
 */
bool hca_word(const char *list, uint32_t k, char *word, size_t room);
/*
 * The index of the host URXE_HOST among the @n hosts of fabric @dir, 0 without
 * the variable; -EINVAL: there is no such host.
 */
int host_by_env(const char *dir, const struct urxe_host *host, uint32_t n);
/*
 * Make a host that of this process.  host_choose(): that of URXE_HOST.
 * -EPROTO: the segment is damaged; -EINVAL: there is no such host
 */
int host_set(struct urxe_fabric *f, uint32_t host);
int host_choose(struct urxe_fabric *f);
/* subnet.c: assign LIDs to the ports and switches of a new segment. */
void subnet_init(struct urxe_dev *dev);
/* port.c: the state of a port whose link comes up. */
uint32_t port_state_up(const struct urxe_dev *dev, uint32_t k);
/* port.c: store the paths between all ports, after a port has changed. */
void paths_update(struct urxe_dev *dev);
void paths_update_of(struct urxe_dev *dev, uint32_t k);
/*
 * gid.c: fill the GID tables of a new segment; that of device 0 only if it is
 * not filled from the addresses of the system.
 */
void gid_table_init(struct urxe_dev *dev);

/*
 * place.c: open the parent directory of a fabric's directory; with create,
 * make it if it does not exist.  -EPERM: other users could replace entries in
 * it; -EAGAIN: it was removed meanwhile.
 */
int place_open(const char *dir, bool create);
/* The fabric at dir was removed: remove the default parent if it is empty. */
void place_leave(const char *dir);

/*
 * stale.c: take the OFD lock of the device segment behind fd: F_RDLCK for
 * users, F_WRLCK for the remover.  -EAGAIN: it is locked; -ESTALE: the file
 * was unlinked.
 */
int fabric_hold(int fd, short type);
/* True if f->dir still is the directory behind f->dirfd. */
bool fabric_in_place(const struct urxe_fabric *f);
/*
 * broken.c: true if files are missing, replaced or too short.  err is the
 * result of mapping the segment.
 */
bool fabric_is_broken(const struct urxe_fabric *f, int err);
/*
 * Rename a broken fabric's directory.  -ESTALE: it is renamed, or was
 * replaced, so a new one can be made; -EAGAIN: another process has it locked;
 * or another error.
 */
int fabric_rename_broken(struct urxe_fabric *f);
/*
 * Remove the fabric behind f->dirfd, whose segment need not be mapped.
 * -EBUSY: it is in use; -EAGAIN: another process makes or removes it;
 * -ESTALE: it was removed or replaced; -ENOTEMPTY: only_empty is set and the
 * port was taken down.
 */
int fabric_retire(struct urxe_fabric *f, bool only_empty);
