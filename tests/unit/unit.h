/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the unit tests share: a fabric of its own for every test, processes,
 * and a file system that is too small.
 */
#ifndef URXE_TESTS_UNIT_H
#define URXE_TESTS_UNIT_H

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

#include "fabric/fabric.h"

/* A path for a new fabric, not made yet.  The runner removes it. */
const char *new_dir(void);
/* A fabric in a new directory. */
struct urxe_fabric *new_fabric(void);
/* The same fabric once more, as another process would see it. */
struct urxe_fabric *again(const struct urxe_fabric *f);

/* Open the device; the descriptor is the context's life. */
int open_context(struct urxe_fabric *f);
/* The same, with the arena mapped. */
struct urxe_arena *open_arena(struct urxe_fabric *f, int *fd);

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
/* Entries in a directory of the fabric whose name starts with prefix. */
int count_entries(const struct urxe_fabric *f, const char *sub,
		  const char *prefix);

/* Run the suite in a directory of its own; what main() returns. */
int run_suite(Suite *s);

#define add(suite, test)                          \
	do {                                      \
		TCase *tc_ = tcase_create(#test); \
		tcase_set_timeout(tc_, 20);       \
		tcase_add_test(tc_, test);        \
		suite_add_tcase(suite, tc_);      \
	} while (0)

#endif
