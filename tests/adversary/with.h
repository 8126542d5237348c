/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Common code of the adversary's tests.  The options are described in
 * docs/adversary.md.  Each test sets its options before it opens the device:
 * Check runs it in a process of its own.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "../verbs/harness.h"

/* Set these options and no others (seed 7).  "": no adversary. */
static inline void with_options(const char *options)
{
	char text[256];

	if (!*options) {
		unsetenv("URXE_ADVERSARY");
		return;
	}
	snprintf(text, sizeof(text), "7,none,%s", options);
	setenv("URXE_ADVERSARY", text, 1);
}
