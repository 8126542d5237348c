/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fixture of all unit tests: directories, child processes, a file system of
 * limited size, and the test runner.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../mark.h"
#include "../turns.h"

/*
 * Return a new path for a fabric, in a static buffer.  The directory does not
 * exist yet. run_suite() removes it.
 */
const char *new_dir(void);

/* Run fn(arg) in a child process; its return value is the exit status. */
pid_t spawn(int (*fn)(void *arg), void *arg);
/* Wait for a child.  Return its exit status, or -signal. */
int reap_child(pid_t pid);
/* Kill the child with SIGKILL and wait for it. */
void kill_child(pid_t pid);

/*
 * Mount a tmpfs of @bytes in a new mount namespace of this process.  Return
 * its path.  NULL: the system does not permit it.  This is logged, and the
 * test has to return.
 */
const char *tiny_tmpfs(size_t bytes);

/* Disable LeakSanitizer, for tests that leave objects open. */
void may_leak(void);

/*
 * Return whether the file system of the fabrics has @bytes free.  If not, log
 * that the test is skipped.
 */
bool have_room(unsigned long long bytes);
/*
 * Run the suite in a new directory, and remove the directory.  Return
 * main()'s result.
 */
int run_suite(Suite *s);

#define add(suite, test) add_loop(suite, test, 1)
/* Run the test @n times, with _i from 0 to n - 1. */
#define add_loop(suite, test, n)                      \
	do {                                          \
		TCase *tc_ = tcase_create(#test);     \
		tcase_set_timeout(tc_, 300);          \
		tcase_add_loop_test(tc_, test, 0, n); \
		suite_add_tcase(suite, tc_);          \
	} while (0)
