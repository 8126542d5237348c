/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the adversary's own tests share.  Each case says itself which knobs it
 * wants, before it opens the device: check runs it in a process of its own.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "../verbs/harness.h"

/* These knobs and no others; "" is a device that is kind. */
static inline void with_knobs(const char *knobs)
{
	char text[256];

	if (!*knobs) {
		unsetenv("URXE_ADVERSARY");
		return;
	}
	snprintf(text, sizeof(text), "7,none,%s", knobs);
	setenv("URXE_ADVERSARY", text, 1);
}
