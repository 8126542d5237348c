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
 * If nofault_is_safe() is false, there is no handler for this thread.  The
 * pages are then checked by system calls before an access
 * (nofault_missing()).  The signal is raised in the program only if another
 * thread removes a page between the check and the access.  Callers that
 * must exclude this use other system calls for the access itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/nofault.h"

/* Result of an access: returned in two registers. */
struct nofault {
	uint64_t left; /* bytes that were not copied: 0 is success */
	/* of the fault, 0: unknown; after an atomic operation the old value */
	uint64_t value;
};

extern internal _Atomic uint32_t nofault_installed;
extern internal thread_own struct nofault_thread nofault_thread;

/* The slow path of nofault_is_safe(). */
internal bool nofault_check_thread(void);

/* Will a fault of this thread be fixed up, and raise no signal? */
static inline bool nofault_is_safe(void)
{
	return likely(load_relaxed(&nofault_installed) &&
		      nofault_thread.unblocked) ||
	       nofault_check_thread();
}

/*
 * The functions of the assembly section.  They are called by those with the
 * same names without "code", below.
 *
 * Copy len bytes, len > 0; the buffers may overlap.  If dst and len are
 * multiples of 8 or 4, the last word of that size is stored last, with
 * release order, otherwise the last byte.  An aligned word is stored at once.
 * The bytes before it are stored in any order.
 */
internal struct nofault nofault_code_copy(char *dst, const char *src,
					  uint64_t len);
/* Load one byte. */
internal struct nofault nofault_code_probe(const char *src);
/* Atomic operations (acquire and release) on an aligned word. */
internal struct nofault nofault_code_fetch_add(char *word, uint64_t add);
internal struct nofault nofault_code_cas(char *word, uint64_t compare,
					 uint64_t swap);

/*
 * Return the first address of [at, at + len), len > 0, whose page cannot be
 * read, or if @write written; 0: there is none.  If there is no handler for
 * this thread, this takes a system call for each page.
 */
internal uint64_t nofault_missing(const char *at, uint64_t len, bool write);

/* The same copy in a thread without handler. */
internal struct nofault nofault_copy_checked(char *dst, const char *src,
					     uint64_t len);

static inline struct nofault nofault_copy(char *dst, const char *src,
					  uint64_t len)
{
	return likely(nofault_is_safe()) ? nofault_code_copy(dst, src, len) :
					   nofault_copy_checked(dst, src, len);
}

/* Can the aligned word be accessed by an atomic operation? */
static inline bool nofault_word_is_there(char *word)
{
	return likely(nofault_is_safe()) || !nofault_missing(word, 8, true);
}

static inline struct nofault nofault_fetch_add(char *word, uint64_t add)
{
	return nofault_word_is_there(word) ? nofault_code_fetch_add(word, add) :
					     (struct nofault){ .left = 8 };
}

static inline struct nofault nofault_cas(char *word, uint64_t compare,
					 uint64_t swap)
{
	return nofault_word_is_there(word) ?
		       nofault_code_cas(word, compare, swap) :
		       (struct nofault){ .left = 8 };
}

/* Entries of the table for the instructions at 1: and 2: */
#define NOFAULT_TABLE                          \
	".pushsection nofault_table,\"a\"\n\t" \
	".balign 4\n\t"                        \
	".long 1b - ., %l[fault] - .\n\t"      \
	".long 2b - ., %l[fault] - .\n\t"      \
	".popsection"

/*
 * Copy 8 bytes to the aligned dst, by one store with release order.  False:
 * they could not be accessed.  nofault_is_safe() is true.
 */
static inline bool nofault_code_copy_word(char *dst, const char *src)
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
	return !nofault_code_copy(dst, src, 8).left;
#endif
}

/*
 * Install the signal handlers, or check that they are still in place.  A
 * context does this when it is opened, and each registration of memory.
 */
internal void nofault_install(void);

/*
 * Called first by a thread of the provider that accesses registered memory
 * and was started by thread_start(), with all signals blocked: unblock those
 * two, if the handlers are installed.
 */
internal void nofault_begin_thread(void);
