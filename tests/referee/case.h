/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Small buggy programs and their corrected versions, one pair for each
 * finding.  `PROGRAM -l` prints the names of its cases; `PROGRAM NAME wrong`
 * and `PROGRAM NAME right` run one of them.  A name is that of the violated
 * rule; after a + it has a variant.
 */
#pragma once

#include "../verbs/harness.h"

struct test_case {
	const char *name;
	void (*run)(bool wrong);
};

/* main() of such a program.  @cases ends with a name of NULL. */
int case_main(int argc, char **argv, const struct test_case *cases);
