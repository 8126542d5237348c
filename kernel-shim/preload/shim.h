/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The preload library: it answers what libibverbs and its friends ask the
 * kernel, and nothing else.
 *
 * It is active if and only if URXE_FABRIC is set and not empty; otherwise
 * every wrapper is one load and a jump to libc.  There is no constructor,
 * destructor or thread: calls arrive before the one and after the other.
 *
 * Inside its own code the library calls libc by the same names that it
 * wraps.  shim_inside, raised on every way in, makes those calls plain ones.
 */
#ifndef URXE_SHIM_H
#define URXE_SHIM_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "fabric/fabric.h"

static_assert(sizeof(off_t) == 8 && sizeof(void *) == 8,
	      "the 64 variants of libc calls are taken for the plain ones");

enum shim_state { SHIM_UNDECIDED, SHIM_OFF, SHIM_ON };

extern _Atomic int shim_state;
extern _Thread_local int shim_inside __attribute__((tls_model("initial-exec")));

/* shim.c --------------------------------------------------------------- */

int shim_decide(void);

static inline bool shim_active(void)
{
	int s = atomic_load_explicit(&shim_state, memory_order_relaxed);

	return (s ? s : shim_decide()) == SHIM_ON && !shim_inside;
}

/* Every way in from a wrapper goes between these two; errno survives. */
static inline int shim_enter(void)
{
	shim_inside++;
	return errno;
}

static inline void shim_leave(int saved_errno)
{
	shim_inside--;
	errno = saved_errno;
}

/* The host's real devices are shown too (URXE_HOST_DEVICES=1). */
bool shim_with_host(void);
/* ... and of the two rdma_cm the host's is wanted (URXE_RDMA_CM=host). */
bool shim_host_cm(void);

/*
 * The fabric of this process, opened or made at the first call; NULL if that
 * fails, and then one line on stderr says why.
 */
struct urxe_fabric *shim_fabric(void);
/* The same, but NULL if nobody needed it yet. */
struct urxe_fabric *shim_fabric_opened(void);
/* Where the fabric is, even if it cannot be opened; "" if nowhere. */
const char *shim_dir(void);

/* One line on stderr, once per process: what failed, and the cause. */
void shim_complain(const char *what, int err);

/* Load the provider once libibverbs is there: it registers by itself. */
void shim_load_provider(void);

/* Bring the GID table up to date; at most ten times a second. */
void shim_refresh_gids(struct urxe_fabric *f);

/* The function that the wrapper of this name hides. */
void *shim_next(_Atomic(void *) *cache, const char *name);

/* redirect.c ----------------------------------------------------------- */

#define REDIRECT_MAX 600

/*
 * Where the file at path really is: path itself, or buf with a place in the
 * fabric's private tree.
 */
const char *redirect_slow(const char *path, char buf[REDIRECT_MAX]);

static inline const char *redirect(const char *path, char buf[REDIRECT_MAX])
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

/* tree.c, tree_gids.c, tree_host.c ------------------------------------- */

/*
 * Files of the tree that are not what they seem have modes and sizes that
 * no other file has: the stand-in of the character device, and attributes
 * that open but cannot be read (an empty GID slot).
 */
#define TREE_CDEV_MODE (S_IFREG | 01600)
#define TREE_CDEV_SIZE 0x75727865
#define TREE_CM_SIZE 0x75727866 /* /dev/infiniband/rdma_cm */
#define TREE_EINVAL_MODE (S_IFREG | 01400)

#define TREE_IBDEV "sys/devices/virtual/infiniband/" URXE_DEVICE_NAME
#define TREE_UVERBS "sys/devices/virtual/infiniband_verbs/" URXE_UVERBS_NAME
#define TREE_PORT TREE_IBDEV "/ports/1/"

/* Make the tree if it is not there. */
int tree_build(struct urxe_fabric *f);
/* Make or replace one file; under the fabric's lock. */
int tree_put(int dirfd, const char *path, const char *text, mode_t mode);
/* Current GIDs and port state into the files, if they changed. */
void tree_refresh(struct urxe_fabric *f);
void tree_write_gids(struct urxe_fabric *f, int dirfd);
/* The current value of a port counter into its file. */
void tree_refresh_counter(struct urxe_fabric *f, const char *path);
/* Every counter's file, at build time. */
int tree_make_counters(int dirfd);
/*
 * A class directory with the host's entries beside ours, for a path such as
 * "/sys/class/infiniband".
 */
void tree_merge_host(struct urxe_fabric *f, const char *path);

/* special.c ------------------------------------------------------------ */

/*
 * What open returned is given the meaning of the file: a context for the
 * character device, an unreadable descriptor for an empty slot.  Returns the
 * descriptor to hand out, or -1 with errno.
 */
int special_open(int fd, int flags);
/* Make st say what the kernel's file would; fd is -1 for a path. */
void special_stat(int fd, struct stat *st);

/*
 * When libibverbs could not open the device it watches /dev/char for five
 * seconds for another one to come.  None will: the error of this thread's
 * failed open, with which to refuse the watch, or 0.
 */
int special_watch(const char *path);

/* The quick test before special_stat. */
static inline bool special_mode(unsigned int mode)
{
	return mode == TREE_CDEV_MODE || mode == TREE_EINVAL_MODE ||
	       mode == CM_FIFO_MODE;
}
/* Is it an event channel of the connection manager? */
bool special_is_cm_channel(const struct stat *st);

/* ucma.c ---------------------------------------------------------------- */

/* A channel was opened in this process: writes may be commands. */
extern _Atomic int ucma_used;
/* Open /dev/infiniband/rdma_cm: the descriptor or -errno. */
int ucma_open(int flags);
/* Carry out a command; false if fd is something else. */
bool ucma_write(int fd, const void *buf, size_t len, ssize_t *out);

/* uverbs.c ------------------------------------------------------------- */

/* RDMA_VERBS_IOCTL: 0, -errno, or 1 if fd is not one of ours. */
int uverbs_ioctl(int fd, void *arg);

/* netlink.c, nldev.c ---------------------------------------------------- */

int netlink_socket(int type);
/* Any other socket: what the number stood for is history. */
void netlink_forget(int fd);
bool netlink_maybe(int fd);
/* Take a request; false if fd is not a stand-in. */
bool netlink_request(int fd, const void *buf, size_t len);

#endif
