/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The program's dispositions (signal(7)) of SIGSEGV and SIGBUS while the
 * kernel has the handler of this library (nofault.h).  The wrappers of
 * sigaction(2) and of similar functions read and change only these.
 *
 * All functions are async-signal-safe, may be called in any thread, and
 * preserve errno.
 *
 * A process owns the dispositions if it installed the handler, or is a child
 * of such a process by fork(2).  A child of vfork(2) shares the memory of its
 * parent, but has signal actions of its own in the kernel.  It does not own
 * the dispositions, and its calls change only its actions in the kernel.  So
 * do those of a child of _Fork(3), for which no handler of pthread_atfork(3)
 * runs.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

/* The members of struct sigaction, with the signal mask of the kernel. */
struct disposition {
	uintptr_t handler, restorer;
	uint64_t mask;
	int flags;
};

enum nofault_state {
	NOFAULT_OFF, /* the handler was never installed */
	NOFAULT_ON, /* the kernel has the handler for both signals */
	/*
	 * The kernel may have another action for one of the signals: the
	 * program set it by a direct system call, or the process is dying.
	 * The handler is not installed again.
	 */
	NOFAULT_LOST,
};
extern _Atomic int nofault_state; /* enum nofault_state */

/* Return true if the wrappers must not simply forward a call for @sig. */
static inline bool disposition_is_kept(int sig)
{
	/* acquire: pairs with disposition_install() */
	return load_acquire(&nofault_state) &&
	       (sig == SIGSEGV || sig == SIGBUS);
}

/*
 * sigaction(2) as the program calls it, for SIGSEGV or SIGBUS, while
 * nofault_state is not NOFAULT_OFF.
 */
int disposition_action(int sig, const struct sigaction *act,
		       struct sigaction *old);

/*
 * Return the disposition for a signal that has arrived.  With SA_RESETHAND
 * and a handler it becomes SIG_DFL at the same time.
 */
struct disposition disposition_take(int sig);

static inline bool disposition_is_handler(uintptr_t handler)
{
	return handler != (uintptr_t)SIG_DFL && handler != (uintptr_t)SIG_IGN;
}

/*
 * Install nofault_handle() for both signals, once.  False: nofault_state is
 * not NOFAULT_ON.
 */
bool disposition_install(void);
/* Return true if the kernel has nofault_handle() for both signals. */
bool disposition_is_installed(void);
/* Return true if this process owns the dispositions (see above). */
bool disposition_is_owned(void);
/* Set the action of the kernel to SIG_DFL; the process is to die of @sig. */
void disposition_reset(int sig);
