// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs that were built with a sanitizer.
 *
 * ASan wants its library to be the first; it is told not to mind
 * (preload/sanitizer.c says why it need not, and tells those who do not get
 * the variable).  Preloading it as well would put it into every shell and tool
 * that the program starts, with leaks of their own.
 *
 * TSan takes our memcpy in one thread's post_send for a race with the other
 * one's reading: it cannot see what orders them.  A NIC's writes it does not
 * see at all; a list of suppressions has it overlook ours.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

/* Add an option, unless the user has decided it. */
static void option_add(const char *variable, const char *name,
		       const char *value)
{
	const char *old = getenv(variable);
	char *all;

	if (old && strstr(old, name))
		return;
	if (asprintf(&all, "%s%s%s=%s", old ? old : "", old && *old ? ":" : "",
		     name, value) < 0)
		return;
	setenv(variable, all, 1);
	free(all);
}

void set_sanitizers(const char *preload)
{
	const char *slash = strrchr(preload, '/');
	char list[4200];

	option_add("ASAN_OPTIONS", "verify_asan_link_order", "0");
	snprintf(list, sizeof(list), "'%.*s/urxe.tsan'", (int)(slash - preload),
		 preload);
	option_add("TSAN_OPTIONS", "suppressions", list);
}
