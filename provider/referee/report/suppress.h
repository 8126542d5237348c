/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Suppressions: known findings that are not reported.
 * URXE_CHECK_SUPPRESSIONS is a list of files, separated by colons.  A line of
 * a file is
 *
 *	RULE:PATTERN
 *
 * A # begins a comment.  RULE and PATTERN are patterns of fnmatch(3).
 * PATTERN is matched with the name of the program, and with the function, the
 * path and the file name of each call of the finding.  Some suppressions are
 * built in (suppress.c).
 */
#pragma once

#include "stack.h"

/*
 * Read the files.  Called once.  Return 0, or -errno after printing the
 * reason on stderr: a file cannot be opened, or a line is invalid (-EINVAL).
 */
int suppress_init(void);

/*
 * Is a finding with this rule and these calls suppressed?  Needs no lock: the
 * lists do not change after suppress_init().
 */
bool suppress(const char *rule, const struct stack_frame *calls, size_t n);
