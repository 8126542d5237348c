/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Findings: reports of violated rules (rules.h).
 *
 * A finding is printed on stderr, or appended to the file that URXE_CHECK_LOG
 * names.  It is also appended as a note to the file that URXE_CHECK_FOUND
 * names, which `urxe run` reads.  A repeated finding (same rule and stack) is
 * only counted; the count is reported when the process ends.
 *
 * A note is one line.  Its fields are separated by tabs:
 *
 *	F PID.NUMBER LEVEL RULE SOURCE PROGRAM OBJECT TEXT HINT CALL...
 *	C PID.NUMBER COUNT
 *
 * The letter tells which process prints the finding:
 *
 *	F, C	this process has printed it
 *	S, T	`urxe run` prints it, with the source lines of its calls: the
 *		process's stderr is URXE_CHECK_STDERR (device:inode)
 *	P	in place of F: `urxe run` prints it if the command fails; its
 *		count has the letter C
 *
 * A CALL is WHAT|FUNCTION|OFFSET|MODULE|ADDRESS.  WHAT names the stack
 * ("posted") and is empty except in its first call.  Tabs, newlines, | and \
 * in fields are escaped.
 *
 * Any thread may report.  Output to stderr may block for as long as it is not
 * read.  So finding_report() only formats and queues, and may be called with
 * locks held; finding_write_out() writes, without referee_lock().  Notes with
 * the letter P are not queued, because they are only written to a file.
 */
#pragma once

#include <stdbool.h>

#include "rules.h"
#include "stack.h"

#define FINDING_NAME 96 /* bytes that name an object */

struct finding {
	enum rule rule;
	const char *object; /* "QP 0x11, wr_id 7" */
	const char *at_is; /* "posted", "created": what @at is the stack of */
	const struct stack *at; /* of the post or the creation; may be NULL */
	bool here; /* report the current stack as well: it has the error */
	/*
	 * The object, or its events that were not acknowledged, is left when
	 * the process ends, which releases it.  The finding is a note
	 * whatever the level of its rule, unless URXE_CHECK_LEAKS is set.
	 * finding_end() reports the number of objects that are not listed
	 * for that reason.
	 */
	bool at_exit;
	/*
	 * A correct program may handle it.  `urxe run` makes it a warning
	 * if the command fails.  Its note has the letter P, and nothing is
	 * printed earlier.
	 */
	bool may_be_handled;
};

/* Set the lowest level to report.  -EINVAL: @level is unknown. */
int finding_init(const char *level);

/*
 * Report a finding; @fmt describes this instance.  It is queued until the
 * next referee_unlock() of this thread, except under `urxe run` if it may be
 * handled, and except if there is no memory.  *f and what it points to are
 * copied.  errno is kept.
 */
void finding_report(const struct finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Report the queued findings of this thread.  Not under referee_lock(). */
void finding_write_out(void);

/*
 * Keep the findings of this thread queued, because they hold only if the verb
 * that is about to be called succeeds.
 */
void finding_hold(void);
/*
 * After the verb: report them if @tell, else drop them.  Not under
 * referee_lock().
 */
void finding_let_go(bool tell);

/* Report the counts of repeated findings when the process ends. */
void finding_end(void);

/* In a forked child, which has one thread: reset the locks and counts. */
void finding_after_fork(void);
