/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Explanations of failures.  They are printed on stderr if the environment
 * variable URXE_LOG is set, and passed to registered functions.  All
 * functions preserve errno, except urxe_fail(), which sets it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "fabric/fabric.h"
#include "fabric/reason.h"

extern internal bool urxe_log_on; /* the log has a reader */
void urxe_log_to_stderr(void);
/*
 * Pass messages to fn as well, without the prefix "urxe[PID]: " and the
 * newline.  At most two functions can be registered.  qpn: 0 if the message
 * is not about a QP; refusal: it is the reason of a failing verb.
 */
void urxe_log_also(void (*fn)(uint32_t qpn, bool refusal, const char *text));
/* Log why a verb fails: "VERB: reason". */
void urxe_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Log a message that is not the reason of a failing verb. */
void urxe_log_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Log a message about a QP; the line begins with its number. */
void urxe_log_qp(uint32_t qpn, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define urxe_why(...)                          \
	do {                                   \
		if (unlikely(urxe_log_on))     \
			urxe_log(__VA_ARGS__); \
	} while (0)
#define urxe_note(...)                              \
	do {                                        \
		if (unlikely(urxe_log_on))          \
			urxe_log_note(__VA_ARGS__); \
	} while (0)

bool urxe_log_is_on_stderr(void);

/*
 * Print on stderr, once in a process, why there is no device, if URXE_LOG is
 * not set.  (If it is set the log has the reason.)
 */
void urxe_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Log the failure of what with the reason of the fabric library, set errno to
 * -err, and return NULL.
 */
void *urxe_fail(int err, const char *what);
