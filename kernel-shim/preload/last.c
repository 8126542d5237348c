// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The last that happens in a process that ends by exit().
 *
 * A plug-in is loaded late, so its own exit handlers and destructors run before
 * those of the program and its libraries, which may still give back what they
 * have.  This library is loaded before all of them: what it registers when it
 * begins is called when all of theirs are over.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "shim.h"

#ifdef __GLIBC__
/* The referee's, or without --check that of the tally of failures. */
static void (*last)(int status);

static void last_run(int status, void *arg)
{
	(void)arg;
	if (last)
		last(status);
}

/* on_exit() alone: atexit() is over when this library's destructors are. */
__attribute__((constructor)) static void last_register(void)
{
	on_exit(last_run, NULL);
}

/*
 * The provider looks for it by its name; fn gets the exit status.
 */
void urxe_call_last(void (*fn)(int)) __attribute__((visibility("default")));
void urxe_call_last(void (*fn)(int))
{
	last = fn;
}
#endif
