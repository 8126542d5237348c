/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The handler of SIGSEGV and SIGBUS.  It resumes instructions of the provider
 * that may fault at their fix-up (base/nofault.h), like the exception table
 * of the kernel.  Every other signal gets the program's disposition
 * (disposition.h).
 *
 * These differences from a program without the handler remain:
 * - If the stack overflows and the disposition is SIG_DFL, the process dies of
 *   SIGSEGV, but the siginfo in the core has no address.
 * - A signal that is sent, and that the program ignores, may interrupt a
 *   system call that SA_RESTART does not restart, such as pause(2).
 * - execve(2) resets SIG_IGN to SIG_DFL.
 * - If all threads of the program block a signal that is sent to the process,
 *   it arrives in a thread of urxe (base/thread.h).
 */
#pragma once

#include <signal.h>

/* The handler (sigaction(2), SA_SIGINFO). */
void nofault_handle(int sig, siginfo_t *info, void *context);

/* The handler is no longer in place: set NOFAULT_LOST, and all generations to
 * 0. */
void nofault_end(void);

/*
 * A thread may have blocked one of the two signals: change the generation of
 * each section.  Async-signal-safe.
 */
void nofault_blocked(void);
