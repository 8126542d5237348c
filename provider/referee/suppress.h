/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Findings that are known and not to be told.  URXE_CHECK_SUPPRESSIONS names
 * files, with : between them, of lines
 *
 *	RULE:PATTERN
 *
 * where # begins a comment, RULE may be *, and PATTERN is, with * and ?, the
 * program's name, or a function or a file of the finding's calls.  Some are
 * urxe's own (suppress.c has the reasons).
 */
#pragma once

#include "stack.h"

/* Read the files.  -errno: one cannot be read, and that is said. */
int suppress_init(void);

/* Is that rule's finding with these calls one of them? */
bool suppress(const char *rule, const struct stack_frame *calls, size_t n);
