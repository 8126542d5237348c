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
 *   system call that SA_RESTART does not restart, such as pause(2).  SIG_IGN
 *   does not discard a signal that is pending for another thread only.
 * - In a handler of another signal whose mask has one of these, a fault of the
 *   provider kills the process: the mask is not known here.
 * - execve(2) resets SIG_IGN to SIG_DFL.
 */
#pragma once

#include <signal.h>

/* The handler (sigaction(2), SA_SIGINFO). */
void nofault_handle(int sig, siginfo_t *info, void *context);

/* The handler is no longer in place: tell all sections, set NOFAULT_LOST. */
void nofault_end(void);

/*
 * The calling thread may block one of the two signals now, or is about to.
 * Each section checks again before it relies on the handler.
 * Async-signal-safe.
 */
void nofault_blocked(void);
