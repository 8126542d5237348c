// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Print one line on stderr at exit if work requests failed or posts met a
 * full queue.  It names the options that explain the failures, for programs
 * that print only the status of a completion.
 *
 * This is done only under `urxe run` (URXE_RUN), and not if --check
 * (URXE_CHECK) or URXE_LOG reports the reasons anyway.  A process that a
 * signal terminates prints nothing.  urxe_call_last() of the preload library
 * runs tally_print() after all other exit handlers; without it nothing is
 * printed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/plural.h"
#include "context.h"
#include "engine/core/log.h"
#include "engine/core/process.h"
#include "engine/core/tally.h"

static void tally_print(int status)
{
	const uint32_t failed = load_relaxed(&urxe_tally.failed);
	/* on success ignored: a program may fill a queue to find its size */
	const uint32_t full = status ? load_relaxed(&urxe_tally.full) : 0;
	char line[200], posts[80] = "";
	int n;

	if (!failed && !full)
		return;
	if (full)
		snprintf(posts, sizeof(posts),
			 "%s%u post%s to a full queue failed (ENOMEM)",
			 failed ? ", " : "", full, plural(full));
	n = snprintf(line, sizeof(line), "urxe[%d]: ", (int)urxe_pid);
	if (failed)
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      "%u work request%s failed", failed,
			      plural(failed));
	n += snprintf(line + n, sizeof(line) - (size_t)n,
		      "%s; for the reason use urxe run --check or URXE_LOG=1\n",
		      posts);
	signal(SIGPIPE, SIG_IGN); /* safe: all code of the program has run */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value;
}

void tally_begin(void)
{
	static _Atomic bool begun;
	void (*call_last)(void (*)(int));

	if (exchange_relaxed(&begun, true) || !is_set("URXE_RUN") ||
	    is_set("URXE_CHECK") || urxe_log_is_on_stderr())
		return;
	*(void **)&call_last = dlsym(RTLD_DEFAULT, "urxe_call_last");
	if (call_last)
		call_last(tally_print);
}

/* Failures before the fork are counted and reported by the parent. */
void tally_after_fork(void)
{
	store_relaxed(&urxe_tally.failed, 0);
	store_relaxed(&urxe_tally.full, 0);
}
