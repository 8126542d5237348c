// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The environment of programs that were built with a sanitizer.
 *
 * AddressSanitizer requires its library to be first in the link order.  The
 * option verify_asan_link_order=0 disables this check.  preload/sanitizer.c
 * explains why that is safe, and sets the option in programs that do not get
 * the variable.  Preloading the library of ASan as well is no alternative: it
 * would also be loaded into each shell and tool that the program starts, and
 * report their leaks.
 *
 * ThreadSanitizer reports the provider's memcpy() in ibv_post_send() of one
 * thread as a race with the reads of another: it does not see what orders
 * them.  It would not see the writes of a NIC at all.  The list
 * preload/urxe.tsan suppresses these reports.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/commands.h"

/* Add an option to the variable, unless the user has set that option. */
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
