/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * <check.h> with cheap assertions in loops.  Check writes the line of each
 * assertion that holds to a file, to report the last one before a crash.
 * That took half of the time of some tests.
 */
#pragma once

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define MARKS 64

/*
 * Run all cases, or that of CK_RUN_CASE, and free the runner.  Return the exit
 * status of the program.  It is a failure if no case runs: CK_RUN_CASE names
 * none.
 */
static inline int run_cases(SRunner *r)
{
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	if (!srunner_ntests_run(r)) {
		fprintf(stderr, "no case ran\n");
		failed = 1;
	}
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * Report @line to Check, unless it was reported before and no assertion with
 * the same line modulo MARKS has been since.  Each C file and each thread has
 * its own record.
 */
static inline void mark_point_once(const char *file, int line)
{
	static _Thread_local int marked[MARKS];

	if (marked[line % MARKS] == line)
		return;
	marked[line % MARKS] = line;
	_mark_point(file, line);
}

#define _mark_point(file, line) mark_point_once(file, line)
