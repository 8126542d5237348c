// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Accesses that may fault (engine/copy/nofault.h): results for all lengths,
 * alignments and overlaps, and faults at each byte.  Tests with _i == 0 have
 * a signal handler.  The others have none, and a signal would kill them.
 */
#define _GNU_SOURCE
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/nofault.h"
#include "engine/copy/nofault.h"
#include "unit_base.h"

#define PAGE 65536 /* a multiple of the page size of each system */

#if defined(__x86_64__) || defined(__aarch64__)

extern internal const char nofault_code_begin[], nofault_code_end[],
	nofault_code_fixup[];
extern internal const struct nofault_entry __start_nofault_table[],
	__stop_nofault_table[];

static void handle(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
#if defined(__x86_64__)
	greg_t *pc = &u->uc_mcontext.gregs[REG_RIP];
	greg_t *value = &u->uc_mcontext.gregs[REG_RDX];
#else
	unsigned long long *pc = &u->uc_mcontext.pc;
	unsigned long long *value = &u->uc_mcontext.regs[1];
#endif

	const struct nofault_entry *e;

	for (e = __start_nofault_table; e < __stop_nofault_table; e++)
		if ((uintptr_t)&e->instruction + e->instruction ==
		    (uintptr_t)*pc) {
			*pc = (uintptr_t)&e->resume + e->resume;
			return;
		}
	if ((const char *)(uintptr_t)*pc < nofault_code_begin ||
	    (const char *)(uintptr_t)*pc >= nofault_code_end) {
		signal(sig, SIG_DFL);
		return;
	}
	*value = (uintptr_t)info->si_addr;
	*pc = (uintptr_t)nofault_code_fixup;
}

/* Map a page of memory that is followed by one that is not accessible. */
static char *map_guarded(bool handled)
{
	const struct sigaction sa = { .sa_sigaction = handle,
				      .sa_flags = SA_SIGINFO };
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(mprotect(p + PAGE, PAGE, PROT_NONE), 0);
	if (handled) {
		sigaction(SIGSEGV, &sa, NULL);
		sigaction(SIGBUS, &sa, NULL);
	}
	nofault_installed = handled;
	ck_assert_int_eq(nofault_is_safe(), handled);
	return p;
}

static void fill(char *p, size_t n, unsigned int seed)
{
	size_t i;

	for (i = 0; i < n; i++) {
		seed = seed * 1103515245 + 12345;
		p[i] = (char)(seed >> 16);
	}
}

START_TEST(copies_like_memmove)
{
	static char a[16384], b[16384];
	size_t len, dst, src;

	for (len = 1; len < 2600; len += len < 300 ? 1 : 97)
		for (dst = 4096; dst < 4096 + 17; dst++)
			for (src = 4096; src < 4096 + 17; src += 3) {
				fill(a, sizeof(a), len);
				memcpy(b, a, sizeof(a));
				memmove(b + dst, b + 8192 + src, len);
				ck_assert_uint_eq(nofault_copy(a + dst,
							       a + 8192 + src,
							       len)
							  .left,
						  0);
				ck_assert_mem_eq(a, b, sizeof(a));
			}
}
END_TEST

START_TEST(copies_overlapping)
{
	static const int shifts[] = { -4096, -65, -64, -17, -16, -8,
				      -4,    -1,  0,   1,   3,	 8,
				      15,    16,  31,  64,  100, 4096 };
	static char a[32768], b[32768];
	size_t len, i;

	for (len = 1; len < 9000; len += len < 200 ? 1 : 997)
		for (i = 0; i < sizeof(shifts) / sizeof(*shifts); i++) {
			fill(a, sizeof(a), len);
			memcpy(b, a, sizeof(a));
			memmove(b + 8192 + shifts[i], b + 8192, len);
			ck_assert_uint_eq(nofault_copy(a + 8192 + shifts[i],
						       a + 8192, len)
						  .left,
					  0);
			ck_assert_mem_eq(a, b, sizeof(a));
		}
}
END_TEST

/*
 * Copy @len bytes to, and from, memory that ends after @there of them.  What
 * is not accessible is counted, and nothing is written twice.
 */
static void copy_at_end(char *p, size_t len, size_t there)
{
	static char other[PAGE];
	char *edge = p + PAGE;
	struct nofault f;

	f = nofault_copy(edge - there, other, len);
	ck_assert_uint_ge(f.left, len - there);
	ck_assert_uint_le(f.left, len);
	ck_assert_uint_ge(f.value, (uintptr_t)edge);
	ck_assert_uint_lt(f.value, (uintptr_t)edge + len);
	f = nofault_copy(other, edge - there, len);
	ck_assert_uint_ge(f.left, len - there);
	ck_assert_uint_le(f.left, len);
	ck_assert_uint_ge(f.value, (uintptr_t)edge);
	ck_assert_uint_lt(f.value, (uintptr_t)edge + len);
}

START_TEST(copy_faults)
{
	char *p = map_guarded(!_i);
	size_t len, there;

	for (len = 1; len < 200; len++)
		for (there = 0; there < len; there++)
			copy_at_end(p, len, there);
	for (len = 1000; len < 9000; len += 501)
		for (there = 0; there < len; there += 37)
			copy_at_end(p, len, there);
	/* backward: the destination begins in the source */
	ck_assert_uint_ge(nofault_copy(p + PAGE - 40, p + PAGE - 80, 60).left,
			  20);
	munmap(p, 2 * PAGE);
}
END_TEST

START_TEST(words_fault)
{
	char *p = map_guarded(!_i), *gone = p + PAGE;
	uint64_t word = 7;
	struct nofault f;

	if (!_i) {
		ck_assert(!nofault_code_copy_word(gone, (char *)&word));
		ck_assert(!nofault_code_copy_word((char *)&word, gone));
		ck_assert(nofault_code_copy_word(gone - 8, (char *)&word));
	} else {
		ck_assert(!nofault_copy(gone - 8, (char *)&word, 8).left);
	}
	ck_assert_uint_eq(*(uint64_t *)(void *)(gone - 8), 7);
	f = nofault_copy(gone, (char *)&word, 8);
	ck_assert_uint_eq(f.left, 8);
	ck_assert_uint_eq(f.value, (uintptr_t)gone);
	ck_assert_uint_eq(nofault_fetch_add(gone, 1).left, 8);
	ck_assert_uint_eq(nofault_cas(gone, 0, 1).left, 8);
	ck_assert_uint_eq(word, 7);
	munmap(p, 2 * PAGE);
}
END_TEST

/* A page that cannot be read, one that cannot be written, the end of a file */
START_TEST(pages_are_missing)
{
	char *p = map_guarded(!_i), *gone = p + PAGE, *file;
	int fd = memfd_create("nofault", MFD_CLOEXEC), i;

	for (i = 0; i < 2; i++) {
		ck_assert(!nofault_missing(gone - 1, 1, i));
		ck_assert(!nofault_missing(p, PAGE, i));
		ck_assert_uint_eq(nofault_missing(gone - 1, 2, i),
				  (uintptr_t)gone);
		ck_assert_uint_eq(nofault_missing(gone + 5, 1, i),
				  (uintptr_t)gone + 5);
		ck_assert(nofault_missing((char *)0x8000000000000000ull, 1, i));
	}
	ck_assert_int_eq(mprotect(p, PAGE, PROT_READ), 0);
	ck_assert(!nofault_missing(p + 7, 9000, false));
	ck_assert_uint_eq(nofault_missing(p + 7, 9000, true), (uintptr_t)p + 7);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, PAGE), 0);
	file = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(file, MAP_FAILED);
	memset(file, 0xff, PAGE);
	for (i = 0; i < 2; i++)
		ck_assert_uint_eq(nofault_missing(file, PAGE + 8, i),
				  (uintptr_t)file + PAGE);
	/* checking does not change the memory */
	for (i = 0; i < PAGE; i++)
		ck_assert_int_eq(file[i], -1);
	close(fd);
	munmap(file, 2 * PAGE);
	munmap(p, 2 * PAGE);
}
END_TEST

#endif

START_TEST(atomics)
{
	uint64_t word = 5;
	struct nofault f;

	f = nofault_fetch_add((char *)&word, 3);
	ck_assert_uint_eq(f.left, 0);
	ck_assert_uint_eq(f.value, 5);
	f = nofault_cas((char *)&word, 7, 9);
	ck_assert_uint_eq(f.value, 8);
	ck_assert_uint_eq(word, 8);
	f = nofault_cas((char *)&word, 8, 9);
	ck_assert_uint_eq(f.left, 0);
	ck_assert_uint_eq(f.value, 8);
	ck_assert_uint_eq(word, 9);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("nofault");

	add(s, atomics);
#if defined(__x86_64__) || defined(__aarch64__)
	add(s, copies_like_memmove);
	add(s, copies_overlapping);
	add_loop(s, copy_faults, 2);
	add_loop(s, words_fault, 2);
	add_loop(s, pages_are_missing, 2);
#endif
	return run_suite(s);
}
