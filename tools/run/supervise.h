/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Run a program as a child and wait for it, transparently: signals, terminal
 * access and the exit status are as if the program had been executed
 * directly. Used by urxe run and urxe bench, which report something when the
 * program has ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define EXIT_LATE 124 /* as timeout(1) */

struct ending {
	int status; /* as from waitpid() */
	/* the time limit expired and the program was terminated */
	bool timed_out;
	/*
	 * SIGHUP, SIGINT, SIGQUIT or SIGTERM received during the run; 0: none
	 */
	int signal;
};

struct attention {
	void (*late)(void); /* called before the program is terminated */
	/* called at least ten times a second, must not block; or NULL */
	void (*look)(void *arg);
	void *arg;
};

/*
 * Run argv for at most @limit ns (0: no limit). If the limit expires, the
 * program and all its descendants are terminated. Return 0, or the errno with
 * which the program could not be executed.
 */
int supervise(char **argv, uint64_t limit, const struct attention *a,
	      struct ending *e);

/* Terminate all descendants that ended programs have left running. */
void supervise_clear(void);

static inline bool ending_is_failure(const struct ending *e)
{
	return e->timed_out || e->status;
}

/* "exit status 1", "signal 11 (Segmentation fault)" ... */
void ending_describe(const struct ending *e, char *text, int len);

/*
 * The exit code that reports how the program ended. If a signal ended it,
 * this process raises the same signal and does not return.
 */
int ending_pass_on(const struct ending *e);
