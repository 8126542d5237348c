/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Run a program and wait for it, for those who have something to say when it
 * has ended.  It should not notice: to its terminal, to who sends signals and
 * to who asks how it ended all is as if it were executed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define EXIT_LATE 124 /* as timeout(1) has it */

struct ending {
	int status; /* as waitpid() has it */
	bool late; /* its time was over, and it was ended */
	int signal; /* that was sent to it by way of us, and ends programs */
};

struct attention {
	void (*late)(void); /* it is about to be ended */
	void (*look)(
		void *arg); /* ten times a second, must not block; or NULL */
	void *arg;
};

/*
 * Run argv for at most limit ns (0: for ever); what it has started is ended
 * with it if it is late.  0, or the errno with which it cannot be executed.
 */
int supervise(char **argv, uint64_t limit, const struct attention *a,
	      struct ending *e);

/* End what programs that have ended have left running. */
void supervise_clear(void);

static inline bool ending_is_failure(const struct ending *e)
{
	return e->late || e->status;
}

/* "exit status 1", "signal 11 (Segmentation fault)" ... */
void ending_describe(const struct ending *e, char *text, int len);

/*
 * The exit code for who is asked how the program ended; does not return if
 * a signal ended it, but ends in the same way.
 */
int ending_pass_on(const struct ending *e);
