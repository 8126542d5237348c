// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program that prints no more than the status of a completion: when it ends,
 * one line names what explains the status.  Only under urxe run, and neither
 * where --check or URXE_LOG explains it already nor where a signal ends it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "context.h"
#include "engine/log.h"
#include "engine/process.h"
#include "engine/tally.h"

static void tally_print(int status)
{
	const uint32_t failed = load_relaxed(&urxe_tally.failed);
	/* to post until the queue is full is a way to count */
	const uint32_t full = status ? load_relaxed(&urxe_tally.full) : 0;
	char line[200], posts[80] = "";
	int n;

	if (!failed && !full)
		return;
	if (full)
		snprintf(posts, sizeof(posts),
			 "%s%u post%s met a full queue (ENOMEM)",
			 failed ? ", " : "", full, full == 1 ? "" : "s");
	n = snprintf(line, sizeof(line), "urxe[%d]: ", (int)urxe_pid);
	if (failed)
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      "%u work request%s failed", failed,
			      failed == 1 ? "" : "s");
	n += snprintf(line + n, sizeof(line) - (size_t)n,
		      "%s; urxe run --check or URXE_LOG=1 explains it\n",
		      posts);
	signal(SIGPIPE, SIG_IGN); /* nothing of the program runs any more */
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

/* What failed before is the parent's. */
void tally_after_fork(void)
{
	store_relaxed(&urxe_tally.failed, 0);
	store_relaxed(&urxe_tally.full, 0);
}
