/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Why something failed: on stderr if URXE_LOG is set, and told to who else wants
 * to hear it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "fabric/fabric.h"
#include "fabric/reason.h"

extern internal bool urxe_log_on; /* somebody listens */
void urxe_log_to_stderr(void);
/* Also to fn, without the beginning and the end of the line.  Two may be named.
 */
void urxe_log_also(void (*fn)(uint32_t qpn, bool refusal, const char *text));
/* Why a verb is refused: "VERB: why". */
void urxe_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What is the reason of no refused verb. */
void urxe_log_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What is said of a QP, whose number the line begins with. */
void urxe_log_qp(uint32_t qpn, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define urxe_why(...) \
	do { \
		if (unlikely(urxe_log_on)) \
			urxe_log(__VA_ARGS__); \
	} while (0)
#define urxe_note(...)                              \
	do {                                        \
		if (unlikely(urxe_log_on))          \
			urxe_log_note(__VA_ARGS__); \
	} while (0)

bool urxe_log_is_on_stderr(void);

/* Once in a process, on stderr without URXE_LOG, too: there is no device. */
void urxe_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* errno = -err, NULL; says why, too. */
void *urxe_fail(int err, const char *what);
