/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Small wrong programs and their corrected twins, one pair for each finding.
 * `PROGRAM -l` prints the names of its cases; `PROGRAM NAME wrong` and `PROGRAM
 * NAME right` run one, in a process of its own.  A name is that of the rule
 * that is broken; behind a + it says how.
 */
#pragma once

#include "../verbs/harness.h"

struct test_case {
	const char *name;
	void (*run)(bool wrong);
};

/* What main() of such a program returns; cases end with a name of NULL. */
int case_main(int argc, char **argv, const struct test_case *cases);
