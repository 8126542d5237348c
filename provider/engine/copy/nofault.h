/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Loads and stores of registered memory, which the program may unmap,
 * protect or truncate while it is registered.
 *
 * This is the exception table of the Linux kernel's copy_from_user().  The
 * instructions are in one assembly section (nofault_x86_64.S,
 * nofault_aarch64.S) with one fix-up label.  Only the copy of a word is inline;
 * its two instructions have entries in a table.  If one of all these raises
 * SIGSEGV or SIGBUS, the signal handler of the preload library continues at
 * the label (base/nofault.h), and the function returns how many bytes were not
 * copied.
 *
 * If nofault_is_safe() is false, there is no handler for this thread, and a
 * fault raises the signal in the program.  Callers that must not raise a
 * signal then use a system call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* Result of an access: returned in two registers. */
struct nofault {
	uint64_t left; /* bytes that were not copied: 0 is success */
	/* of the fault, 0: unknown; after an atomic operation the old value */
	uint64_t value;
};

/*
 * Copy len bytes, len > 0; the buffers may overlap.  If dst and len are
 * multiples of 8 or 4, the last word of that size is stored last, with
 * release order, otherwise the last byte.  An aligned word is stored at once.
 * The bytes before it are stored in any order.
 */
internal struct nofault nofault_copy(char *dst, const char *src, uint64_t len);
/* Load one byte. */
internal struct nofault nofault_probe(const char *src);
/* Atomic operations (acquire and release) on an aligned word. */
internal struct nofault nofault_fetch_add(char *word, uint64_t add);
internal struct nofault nofault_cas(char *word, uint64_t compare,
				    uint64_t swap);

/* Entries of the table for the instructions at 1: and 2: */
#define NOFAULT_TABLE                          \
	".pushsection nofault_table,\"a\"\n\t" \
	".balign 4\n\t"                        \
	".long 1b - ., %l[fault] - .\n\t"      \
	".long 2b - ., %l[fault] - .\n\t"      \
	".popsection"

/*
 * Copy 8 bytes to the aligned dst, by one store with release order.  False:
 * they could not be accessed.
 */
static inline bool nofault_copy_word(char *dst, const char *src)
{
#if defined(__x86_64__)
	__asm__ goto("1: movq (%[src]), %%rax\n\t"
		     "2: movq %%rax, (%[dst])\n\t" NOFAULT_TABLE
		     :
		     : [dst] "r"(dst), [src] "r"(src)
		     : "rax", "memory"
		     : fault);
	return true;
fault:
	return false;
#elif defined(__aarch64__)
	__asm__ goto("1: ldr x9, [%[src]]\n\t"
		     "2: stlr x9, [%[dst]]\n\t" NOFAULT_TABLE
		     :
		     : [dst] "r"(dst), [src] "r"(src)
		     : "x9", "memory"
		     : fault);
	return true;
fault:
	return false;
#else
	return !nofault_copy(dst, src, 8).left;
#endif
}

extern internal _Atomic uint32_t nofault_generation;
/* The generation in which this thread was found not to block the signals */
extern internal thread_own uint32_t nofault_checked;

/* The slow path of nofault_is_safe(). */
internal bool nofault_check_thread(void);

/* Will a fault of this thread be fixed up, and raise no signal? */
static inline bool nofault_is_safe(void)
{
	const uint32_t now = load_relaxed(&nofault_generation);

	return likely(now && now == nofault_checked) || nofault_check_thread();
}

/*
 * Install the signal handlers, or check that they are still in place.  A
 * context does this when it is opened, and each registration of memory.
 */
internal void nofault_install(void);
