/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Telling what was found.
 *
 * A finding is told when it is found, on stderr or in the file that
 * URXE_CHECK_LOG names, and noted in the file that URXE_CHECK_FOUND names,
 * which `urxe run` reads.  The same again (rule and stack) is counted, and the
 * count told at the end.
 *
 * A note is one line for a finding: fields, each with a tab before it,
 *
 *	F PID.NUMBER LEVEL RULE SOURCE PROGRAM OBJECT TEXT HINT CALL...
 *	C PID.NUMBER COUNT
 *
 * or S and T in place of F and C, or P in place of F, if `urxe run` is to
 * print it, with the sources of its calls: that is so where URXE_CHECK_STDERR,
 * a device and an inode, is the process's stderr.
 *
 * A CALL is WHAT|FUNCTION|OFFSET|MODULE|ADDRESS, WHAT being empty but for the
 * first of a stack ("posted").  Tabs, newlines, | and \ in it are escaped.
 */
#pragma once

#include <stdbool.h>

#include "rules.h"
#include "stack.h"

#define FINDING_NAME 96 /* bytes that name an object */

struct finding {
	enum rule rule;
	const char *object; /* "QP 0x11, wr_id 7" */
	const char *at_is; /* "posted", "made": what at is the stack of */
	const struct stack *at; /* of the post, or of the object's making */
	bool here; /* the stack of now, too: what is wrong is being done */
	/*
	 * The object, with its events that were not acknowledged, was left at
	 * the end of the process, which releases it: the finding is a note
	 * whatever the level of its rule, unless URXE_CHECK_LEAKS is set.
	 * finding_end() reports the number of objects that are not told for
	 * that reason.
	 */
	bool at_exit;
	/*
	 * A correct program may handle it.  `urxe run` knows whether the
	 * command failed, and makes it a warning then; its letter is P, and
	 * nothing is printed before.
	 */
	bool may_be_handled;
};

/* -EINVAL: level is none of those there are. */
int finding_init(const char *level);

/*
 * It is found, with what is wrong this time; and told by referee_unlock(), as
 * that may last for as long as nobody reads what is written.
 */
void finding_tell(const struct finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Tell what this thread found.  Not under referee_lock(). */
void finding_write_out(void);

/*
 * This thread is about to ask a verb for something that the verb may refuse:
 * what is found from now on ...
 */
void finding_hold(void);
/* ... is told, or forgotten as nothing happened.  Not under referee_lock(). */
void finding_let_go(bool tell);

/* Tell the counts of what was found several times: the process ends. */
void finding_end(void);

/* In a forked child, which is alone and begins to count anew. */
void finding_after_fork(void);
