/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Why something failed: on stderr if URXE_LOG is set, and told to who else wants
 * to hear it.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "fabric/fabric.h"

extern internal bool urxe_log_on; /* somebody listens */
void urxe_log_to_stderr(void);
/* Also to fn, without the beginning and the end of the line. */
void urxe_log_also(void (*fn)(const char *text));
void urxe_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#define urxe_why(...) \
	do { \
		if (unlikely(urxe_log_on)) \
			urxe_log(__VA_ARGS__); \
	} while (0)

/* errno = -err, NULL; says why, too. */
void *urxe_fail(int err, const char *what);

/* Names for messages, also of values that do not exist. */
const char *urxe_state_name(unsigned int ibv_qp_state);
const char *urxe_status_name(unsigned int ibv_wc_status);
