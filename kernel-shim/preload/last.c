// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Run a function of the provider after all other exit handlers of exit(3).
 *
 * Exit handlers run in reverse order of registration.  The provider is a
 * plug-in that is loaded late, so its own exit handlers and destructors run
 * before those of the program and its libraries, which may still destroy
 * verbs objects.  The preload library is loaded before all of them.
 * Therefore a handler that its constructor registers runs last.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "shim.h"

#ifdef __GLIBC__
/*
 * Set by the referee (urxe run --check, provider/referee/leave.c), or without
 * --check by the summary of failures (provider/abi/tally.c).
 */
static void (*last)(int status);

static void last_run(int status, void *arg)
{
	(void)arg;
	if (last)
		last(status);
}

/*
 * on_exit(3), not atexit(3): a handler that a shared library registers with
 * atexit() runs no later than the destructors of that library.
 */
__attribute__((constructor)) static void last_register(void)
{
	on_exit(last_run, NULL);
}

/*
 * Register @fn, which replaces an earlier one.  It is called with the exit
 * status.  The provider finds this function with dlsym(3).
 */
void urxe_call_last(void (*fn)(int)) __attribute__((visibility("default")));
void urxe_call_last(void (*fn)(int))
{
	last = fn;
}
#endif
