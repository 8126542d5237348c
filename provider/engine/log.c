// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Explanations.  Only on stderr and only when asked for by URXE_LOG. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "log.h"
#include "process.h"

bool urxe_log_on;
static bool to_stderr;
static void (*also)(const char *text);

void urxe_log_to_stderr(void)
{
	to_stderr = true;
	urxe_log_on = true;
}

void urxe_log_also(void (*fn)(const char *text))
{
	also = fn;
	urxe_log_on = true;
}

void urxe_log(const char *fmt, ...)
{
	int n, saved = errno, cancel;
	char line[512];
	va_list ap;

	if (!urxe_log_on)
		return;
	n = snprintf(line, sizeof(line), "urxe[%d]: ", (int)urxe_pid);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	if (also)
		also(line + n);
	if (to_stderr) {
		strcat(line, "\n");
		/* no thread that is cancelled ends in here, with a QP's lock */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		/* one write, so that lines of several processes stay whole */
		if (write(STDERR_FILENO, line, strlen(line)) < 0)
			errno = saved;
		pthread_setcancelstate(cancel, NULL);
	}
	errno = saved;
}

const char *urxe_state_name(unsigned int state)
{
	static const char *const name[] = { "RESET", "INIT", "RTR", "RTS",
					    "SQD",   "SQE",  "ERR" };

	return state < sizeof(name) / sizeof(*name) ? name[state] : "?";
}

const char *urxe_status_name(unsigned int status)
{
	static const char *const name[] = {
		[IBV_WC_SUCCESS] = "SUCCESS",
		[IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
		[IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
		[IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
		[IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
		[IBV_WC_MW_BIND_ERR] = "MW_BIND_ERR",
		[IBV_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
		[IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
		[IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
		[IBV_WC_REM_OP_ERR] = "REM_OP_ERR",
		[IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
		[IBV_WC_REM_ABORT_ERR] = "REM_ABORT_ERR",
		[IBV_WC_FATAL_ERR] = "FATAL_ERR",
	};

	return status < sizeof(name) / sizeof(*name) && name[status] ?
		       name[status] : "?";
}

void *urxe_fail(int err, const char *what)
{
	urxe_why("%s: %s%s%s", what, strerror(-err),
		 fabric_why()[0] ? ": " : "", fabric_why());
	fabric_why_clear(); /* said once, and of this failure only */
	errno = -err;
	return NULL;
}
