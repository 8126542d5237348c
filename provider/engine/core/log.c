// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Log messages: why a verb failed, and notes.  They go to stderr if URXE_LOG
 * is set, and to up to two functions that urxe_log_also() registers.
 *
 * Any thread may log, with any lock held.  A message is one line of at most
 * 640 bytes, longer ones are cut, and is written with one write(2).  errno is
 * preserved, except by urxe_fail(), which sets it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "process.h"

bool urxe_log_on;
static bool to_stderr;
static void (*also[2])(uint32_t qpn, bool refusal, const char *text);

void urxe_log_to_stderr(void)
{
	to_stderr = true;
	urxe_log_on = true;
}

bool urxe_log_is_on_stderr(void)
{
	return to_stderr;
}

void urxe_log_also(void (*fn)(uint32_t qpn, bool refusal, const char *text))
{
	also[also[0] != NULL] = fn;
	urxe_log_on = true;
}

static void log_write(const char *line, size_t n)
{
	int cancel;

	/* write() is a cancellation point; the caller may have a QP's lock */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	/* one write, so that lines of several processes do not mix */
	if (write(STDERR_FILENO, line, n) < 0)
		errno = 0; /* the caller restores it */
	pthread_setcancelstate(cancel, NULL);
}

static void log_line(uint32_t qpn, bool refusal, const char *fmt, va_list ap)
{
	const size_t room = 640;
	char line[640 + 1];
	int saved = errno;
	size_t n, begin;

	begin = n = snprintf(line, room, "urxe[%d]: ", (int)urxe_pid);
	if (qpn)
		n += snprintf(line + n, room - n, "QP 0x%x", qpn);
	n += vsnprintf(line + n, room - n, fmt, ap);
	if (n >= room)
		n = room - 1;
	if (also[0])
		also[0](qpn, refusal, line + begin);
	if (also[1])
		also[1](qpn, refusal, line + begin);
	line[n++] = '\n';
	if (to_stderr)
		log_write(line, n);
	errno = saved;
}

void urxe_log(const char *fmt, ...)
{
	va_list ap;

	if (!urxe_log_on)
		return;
	va_start(ap, fmt);
	log_line(0, true, fmt, ap);
	va_end(ap);
}

void urxe_log_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(0, false, fmt, ap);
	va_end(ap);
}

void urxe_log_qp(uint32_t qpn, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(qpn, false, fmt, ap);
	va_end(ap);
}

void urxe_complain(const char *fmt, ...)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	const size_t room = 640;
	char line[640 + 1];
	int saved = errno;
	va_list ap;
	size_t n;

	/* with URXE_LOG the caller's log has the message */
	if (to_stderr ||
	    atomic_flag_test_and_set_explicit(&reported, memory_order_relaxed))
		return;
	n = snprintf(line, room, "urxe: ");
	va_start(ap, fmt);
	n += vsnprintf(line + n, room - n, fmt, ap);
	va_end(ap);
	if (n >= room)
		n = room - 1;
	line[n++] = '\n';
	log_write(line, n);
	errno = saved;
}

void *urxe_fail(int err, const char *what)
{
	urxe_why("%s: %s%s%s", what, strerror(-err),
		 fabric_why()[0] ? ": " : "", fabric_why());
	fabric_why_clear(); /* it belongs to this failure only */
	errno = -err;
	return NULL;
}
