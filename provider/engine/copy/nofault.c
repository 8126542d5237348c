// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Whether faults of nofault.h are fixed up: the provider's half of
 * base/nofault.h.  The preload library writes nofault_generation.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include "base/nofault.h"
#include "nofault.h"

_Atomic uint32_t nofault_generation;
thread_own uint32_t nofault_checked;

/* Labels of the assembly files */
extern internal const char nofault_code_begin[], nofault_code_end[],
	nofault_code_fixup[];
/* Defined by the linker; NULL if the section is empty */
extern internal const struct nofault_entry __start_nofault_table[]
	__attribute__((weak));
extern internal const struct nofault_entry __stop_nofault_table[]
	__attribute__((weak));

static nofault_install_fn *install;

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
		.generation = &nofault_generation,
	};

	pthread_once(&once, nofault_find);
	if (install)
		install(&section);
}

bool nofault_check_thread(void)
{
	const uint32_t now = load_relaxed(&nofault_generation);
	sigset_t blocked;

	if (!now || pthread_sigmask(SIG_BLOCK, NULL, &blocked) ||
	    sigismember(&blocked, SIGSEGV) || sigismember(&blocked, SIGBUS))
		return false;
	nofault_checked = now;
	return true;
}
