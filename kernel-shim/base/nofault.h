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
 * *generation is 0 while the handlers are not in place.  It changes, and is
 * not 0, whenever a thread may have blocked the signals since.  A thread that
 * blocks one of them is killed by a fault (sigprocmask(2)), so a thread
 * relies on the handlers only after it has found them unblocked in this
 * generation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Offsets from the addresses of these two members */
struct nofault_entry {
	int32_t instruction, resume;
};

struct nofault_section {
	const char *begin, *end, *fixup;
	const struct nofault_entry *table, *table_end;
	_Atomic uint32_t *generation;
};

/*
 * Exported by the preload library, found with dlsym(3): install the handlers
 * if they are not in place, unless URXE_FAULT_HANDLER is 0.  *s must stay
 * valid.  False, and *s->generation is 0: they cannot be installed, or the
 * program has replaced them by a direct system call.  Preserves errno.
 */
#define NOFAULT_INSTALL "urxe_nofault"
typedef bool nofault_install_fn(const struct nofault_section *s);
