/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What all unit tests share: directories, processes, and a file system that is
 * too small.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../mark.h"
#include "../turns.h"

/* A path for a new fabric, not made yet.  The runner removes it. */
const char *new_dir(void);

/* Run fn(arg) in a child; its return value is the exit status. */
pid_t spawn(int (*fn)(void *arg), void *arg);
/* Wait for a child: its exit status, or -signal. */
int reap_child(pid_t pid);
void kill_child(pid_t pid);

/*
 * Mount a tmpfs of that many bytes in a mount namespace of this process.
 * NULL when the system does not let us: the test returns then, and says so.
 */
const char *tiny_tmpfs(size_t bytes);

/* For tests that leave things open: no complaint about leaks. */
void may_leak(void);

/* Is there this much room where the fabrics are made? */
bool have_room(unsigned long long bytes);
/* Run the suite in a directory of its own; what main() returns. */
int run_suite(Suite *s);

#define add(suite, test) add_loop(suite, test, 1)
/* The test with _i from 0 to n - 1. */
#define add_loop(suite, test, n)                      \
	do {                                          \
		TCase *tc_ = tcase_create(#test);     \
		tcase_set_timeout(tc_, 300);          \
		tcase_add_loop_test(tc_, test, 0, n); \
		suite_add_tcase(suite, tc_);          \
	} while (0)
