// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Explanations.  Only on stderr and only when asked for by URXE_LOG. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "urxe.h"

bool urxe_log_on;

void urxe_log(const char *fmt, ...)
{
	char line[512];
	int n, saved = errno;
	va_list ap;

	if (!urxe_log_on)
		return;
	n = snprintf(line, sizeof(line), "urxe[%d]: ", (int)urxe_pid);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	strcat(line, "\n");
	/* one write, so that lines of several processes stay whole */
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		errno = saved;
	errno = saved;
}

void *urxe_fail(int err, const char *what)
{
	urxe_why("%s: %s%s%s", what, strerror(-err),
		 fabric_why()[0] ? ": " : "", fabric_why());
	fabric_why_clear(); /* said once, and of this failure only */
	errno = -err;
	return NULL;
}
