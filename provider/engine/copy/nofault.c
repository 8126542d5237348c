// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Whether faults of nofault.h are fixed up: the provider's half of
 * base/nofault.h.  The preload library writes nofault_installed.
 *
 * Without a handler, pages are checked by futex(2), which reads or changes a
 * word of the caller and returns EFAULT instead of raising a signal.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nofault.h"
#include "shared/limits.h"

_Atomic uint32_t nofault_installed;
thread_own struct nofault_thread nofault_thread;

/* Labels of the assembly files */
extern internal const char nofault_code_begin[], nofault_code_end[],
	nofault_code_fixup[];
/* Defined by the linker; NULL if the section is empty */
extern internal const struct nofault_entry __start_nofault_table[]
	__attribute__((weak));
extern internal const struct nofault_entry __stop_nofault_table[]
	__attribute__((weak));

static nofault_install_fn *install;

static struct nofault_thread *nofault_self(void)
{
	return &nofault_thread;
}

static void nofault_find(void)
{
	*(void **)&install = dlsym(RTLD_DEFAULT, NOFAULT_INSTALL);
}

void nofault_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static const struct nofault_section section = {
		.begin = nofault_code_begin,
		.end = nofault_code_end,
		.fixup = nofault_code_fixup,
		.table = __start_nofault_table,
		.table_end = __stop_nofault_table,
		.installed = &nofault_installed,
		.self = nofault_self,
	};

	pthread_once(&once, nofault_find);
	if (install)
		install(&section);
}

bool nofault_check_thread(void)
{
	sigset_t blocked;

	if (!load_relaxed(&nofault_installed) ||
	    pthread_sigmask(SIG_BLOCK, NULL, &blocked) ||
	    sigismember(&blocked, SIGSEGV) || sigismember(&blocked, SIGBUS))
		return false;
	nofault_thread.unblocked = true;
	return true;
}

void nofault_begin_thread(void)
{
	sigset_t set;

	if (!load_relaxed(&nofault_installed))
		return;
	/* before the first signal can arrive */
	nofault_thread.is_urxe = true;
	atomic_signal_fence(memory_order_release);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/*
 * Wait for the word, for no time, if it has a value that is unlikely.  A
 * wake-up that arrives in that moment is lost for other threads.
 */
static bool word_can_be_read(const char *word)
{
	const struct timespec no_time = { 0 };

	return !syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0x715c0de5,
			&no_time) ||
	       errno != EFAULT;
}

/*
 * Add 0 to the word, atomically.  A thread that waits for the word is woken,
 * which futex(2) permits at any time, if it has an unlikely value.  None
 * waits for the first address.
 */
static bool word_can_be_written(char *word)
{
	uint32_t none = 0;

	return syscall(SYS_futex, &none, FUTEX_WAKE_OP_PRIVATE, 0, NULL, word,
		       FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0x800)) >=
		       0 ||
	       errno != EFAULT;
}

/* @at need not be aligned: the word that contains it is in the same page. */
static bool page_is_there(uint64_t at, bool write)
{
	char *word = (char *)(uintptr_t)(at & ~7ull);
	const int saved = errno;
	bool is;

	if (likely(nofault_is_safe()))
		return !(write ? nofault_code_fetch_add(word, 0) :
				 nofault_code_probe(word))
				.left;
	is = write ? word_can_be_written(word) : word_can_be_read(word);
	errno = saved;
	return is;
}

uint64_t nofault_missing(const char *start, uint64_t len, bool write)
{
	uint64_t at = (uintptr_t)start;
	const uint64_t end = at + len;

	if (at > UINT64_MAX - len) /* beyond the address space */
		return at;
	for (; at < end; at = (at | (URXE_PAGE - 1)) + 1)
		if (!page_is_there(at, write))
			return at;
	return 0;
}

struct nofault nofault_copy_checked(char *dst, const char *src, uint64_t len)
{
	uint64_t at = nofault_missing(src, len, false);

	if (!at)
		at = nofault_missing(dst, len, true);
	return at ? (struct nofault){ .left = len, .value = at } :
		    nofault_code_copy(dst, src, len);
}
