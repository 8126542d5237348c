/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Common definitions of the connection manager tests, with and without
 * librdmacm.  Implementation: harness.c.
 */
#pragma once

#include <errno.h>
#include <netinet/in.h>

#include "../mark.h"

#define ck_ok(call)                                                      \
	do {                                                             \
		int ok_ = (call);                                        \
		ck_assert_msg(!ok_, #call ": %d, errno %d", ok_, errno); \
	} while (0)
/* Assert that @call returns -1 and sets errno to @err. */
#define ck_fails(call, err)                     \
	do {                                    \
		errno = 0;                      \
		ck_assert_int_eq((call), -1);   \
		ck_assert_int_eq(errno, (err)); \
	} while (0)

/* Reject reasons (REJ) and SIDR_REP status values. */
#define REJ_TIMEOUT 4
#define REJ_NO_LISTENER 8
#define REJ_CONSUMER 28
#define REJ_VENDOR_OPTION 35
#define SIDR_UNSUPPORTED 1
#define SIDR_REJECT 2

/*
 * Return a non-loopback IPv4 address of this host, or 127.0.0.1 if there is
 * none.
 */
struct sockaddr_in ip4(int port);

int run_suite(Suite *s);
#define add(suite, test) add_loop(suite, test, 1)
#define add_loop(suite, test, n)                        \
	do {                                            \
		TCase *tc_ = tcase_create(#test);       \
		tcase_set_timeout(tc_, 300);            \
		tcase_add_loop_test(tc_, test, 0, (n)); \
		suite_add_tcase(suite, tc_);            \
	} while (0)
