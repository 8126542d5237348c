/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Loads and stores that may fault: the interface between the provider, which
 * has the instructions (engine/copy/nofault.h), and the preload library,
 * which has the signal handler (preload/nofault.c).
 *
 * A SIGSEGV or SIGBUS that the kernel raises for an instruction in [begin,
 * end) resumes at fixup, with the fault address in the register of the second
 * return value (RDX, x1), 0 if it is not known.  One for an instruction in
 * [table, table_end) resumes at the address that its entry has.  Every other
 * signal gets the program's own disposition.
 *
 * *installed is 0 while the handlers are not in place.  A thread that blocks
 * one of the signals is killed by a fault (sigprocmask(2)), so it relies on
 * the handlers only after it has found both unblocked.  The preload library
 * clears the thread's record of that (struct nofault_thread) when the thread
 * may have blocked them since.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Offsets from the addresses of these two members */
struct nofault_entry {
	int32_t instruction, resume;
};

/* The calling thread; only this thread accesses it, also in handlers. */
struct nofault_thread {
	bool unblocked; /* neither signal was blocked when that was checked */
	/*
	 * It belongs to the provider.  A signal that is sent to the process is
	 * for another thread.
	 */
	bool is_urxe;
};

struct nofault_section {
	const char *begin, *end, *fixup;
	const struct nofault_entry *table, *table_end;
	_Atomic uint32_t *installed;
	struct nofault_thread *(*self)(void); /* async-signal-safe */
};

/*
 * Exported by the preload library, found with dlsym(3): install the handlers
 * if they are not in place, unless URXE_FAULT_HANDLER is 0.  *s must stay
 * valid.  False, and *s->installed is 0: they cannot be installed, or the
 * program has replaced them by a direct system call.  Preserves errno.
 */
#define NOFAULT_INSTALL "urxe_nofault"
typedef bool nofault_install_fn(const struct nofault_section *s);
