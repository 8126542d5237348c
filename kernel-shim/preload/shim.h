/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The preload library (LD_PRELOAD): it intercepts the libc calls by which
 * libibverbs, librdmacm and RDMA tools access the kernel's RDMA subsystem,
 * and emulates that subsystem.  All other calls are forwarded.
 *
 * It is active if and only if URXE_FABRIC is set and not empty; otherwise
 * a wrapper is one load and a jump to libc.  Nothing that the wrappers need
 * is set up by a constructor or freed by a destructor: calls may arrive
 * before the constructors and after the destructors of the library.  The
 * first call decides the state (shim_decide()).  All functions may be called
 * from any thread.
 *
 * The library's own code calls libc functions that it wraps.  shim_inside,
 * which each wrapper increments before it enters that code, makes the nested
 * wrappers forward their calls.
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
	      "foo64() is equivalent to foo() only on 64-bit systems");

enum shim_state { SHIM_UNDECIDED, SHIM_OFF, SHIM_ON };

extern _Atomic int shim_state; /* enum shim_state */
/* nesting depth of this thread in the library's own code */
extern _Thread_local int shim_inside __attribute__((tls_model("initial-exec")));

/*
 * Nonzero: the program has called ibv_fork_init(3) or
 * ibv_is_fork_initialized(3), or code outside of urxe has called madvise(2)
 * with MADV_DONTFORK.  The referee reads it by urxe_fork_is_known().
 */
extern _Atomic int shim_fork_known;

/*
 * Decide the state from the environment at the first call, and return it.
 * The store of shim_state is release, after all other settings.
 */
int shim_decide(void);

static inline bool shim_active(void)
{
	/* acquire: pairs with shim_decide(), for the settings */
	int s = load_acquire(&shim_state);

	return (s ? s : shim_decide()) == SHIM_ON && !shim_inside;
}

/*
 * A wrapper calls the library's own code between shim_enter() and
 * shim_leave().  shim_enter() returns errno, shim_leave() sets it.
 */
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

/*
 * Return true if the RDMA devices of the host are visible, too
 * (URXE_HOST_DEVICES set, not "0").
 */
bool shim_with_host(void);
/*
 * Return true if rdma_cm is the host's, not the emulated one
 * (URXE_RDMA_CM=host, only with the host's devices).
 */
bool shim_host_cm(void);

/*
 * Return the fabric of this process.  The first call opens it, or creates it.
 * NULL: that failed; shim_complain() has reported the reason.
 */
struct urxe_fabric *shim_fabric(void);
/* The same; NULL if it does not exist. */
struct urxe_fabric *shim_fabric_if_any(void);
/* Return the fabric of this process, or NULL if it is not open yet. */
struct urxe_fabric *shim_fabric_opened(void);
/*
 * Return true if the file is in the file system of the fabric.  All special
 * files are there.  False if the fabric is not open.
 */
bool shim_has_file(const struct stat *st);
/*
 * Return the directory of the fabric, even if it cannot be opened; "" if
 * there is none.
 */
const char *shim_dir(void);

/*
 * Print one line to stderr, once per process: what failed, and the reason.
 * @err: -errno.
 */
void shim_complain(const char *what, int err);
/*
 * If URXE_LOG is set, print a line to stderr, like the provider
 * (engine/core/log.c).  errno is preserved.
 */
void shim_why(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Load the provider, if libibverbs is loaded.  The provider registers itself
 * in its constructor.  Failure is reported on stderr.
 */
void shim_load_provider(void);

/*
 * Update the GID table from the addresses of the network namespace, at most
 * ten times a second.
 */
void shim_refresh_gids(struct urxe_fabric *f);

/*
 * Return the next definition of function @name, which the wrapper of that
 * name hides (RTLD_NEXT), or shim_missing.  errno is preserved.
 */
void *shim_next(_Atomic(void *) *cache, const char *name);
/* Replacement for a function that does not exist: return -1, ENOSYS. */
long shim_missing(void);
