/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The preload library: it answers what libibverbs and its friends ask the
 * kernel, and nothing else.
 *
 * It is active if and only if URXE_FABRIC is set and not empty; otherwise
 * every wrapper is one load and a jump to libc.  There is no constructor
 * and no destructor: calls arrive before the one and after the other.
 *
 * Inside its own code the library calls libc by the same names that it
 * wraps.  shim_inside, raised on every way in, makes those calls plain ones.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/atomic.h"
#include "fabric/fabric.h"

static_assert(sizeof(off_t) == 8 && sizeof(void *) == 8,
	      "the 64 variants of libc calls are taken for the plain ones");

enum shim_state { SHIM_UNDECIDED, SHIM_OFF, SHIM_ON };

extern _Atomic int shim_state;
extern _Thread_local int shim_inside __attribute__((tls_model("initial-exec")));

/* The program asked for fork support, or gave advice of its own. */
extern _Atomic int shim_fork_known;

int shim_decide(void);

static inline bool shim_active(void)
{
	int s = load_acquire(&shim_state); /* and what was decided with it */

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
/* Is it on the file system of the fabric, where alone special files are? */
bool shim_has_file(const struct stat *st);
/* Where the fabric is, even if it cannot be opened; "" if nowhere. */
const char *shim_dir(void);

/* One line on stderr, once per process: what failed, and the cause. */
void shim_complain(const char *what, int err);
/* A line on stderr if URXE_LOG is set, as the provider's (engine/log.c). */
void shim_why(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Load the provider once libibverbs is there: it registers by itself. */
void shim_load_provider(void);

/* Bring the GID table up to date; at most ten times a second. */
void shim_refresh_gids(struct urxe_fabric *f);

/* The function that the wrapper of this name hides. */
void *shim_next(_Atomic(void *) *cache, const char *name);
/* What stands for a function that does not exist: -1 and ENOSYS. */
long shim_missing(void);
