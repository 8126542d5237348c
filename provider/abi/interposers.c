// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interposers (rooms_*()): layers of operations in front of the verbs, if the
 * environment requests them.  They are installed once in a process, when the
 * first device is opened, and serve all contexts.
 *
 * From the innermost to the outermost:
 *
 *	wire		URXE_WIRE	QPs of other hosts, over RoCE v2
 *	timing		URXE_TIMING	the time that messages take
 *	adversary	URXE_ADVERSARY	reordering and delays, by a seed
 *	faults		URXE_FAULTS	injected failures
 *	referee		URXE_CHECK	checks what the program does
 *	recorder	URXE_TRACE	records calls and WRs
 *	undefined	URXE_ADVERSARY	fills undefined fields of completions
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "adversary/adversary.h"
#include "adversary/fault.h"
#include "adversary/timing.h"
#include "context.h"
#include "engine/core/log.h"
#include "recorder/recorder.h"
#include "referee/referee.h"
#include "wire/wire.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct pabi_ops entered;
static int refused; /* -errno of an interposer that was not installed */

static void interposers_install(void)
{
	const struct adversary *a = adversary_of_process();
	struct faults *f = faults_of_process();

	entered = urxe_ops;
	if (wire_address())
		wire_wrap(&entered);
	if (timing_is_on())
		timing_wrap(&entered);
	if (a && a->on)
		adversary_wrap(&entered, a);
	if (f && f->n)
		fault_wrap(&entered, f);
	refused = referee_wrap(&entered);
	if (!refused)
		refused = recorder_wrap(&entered);
	if (a && a->on)
		undefined_wrap(&entered, a);
}

/*
 * Report an invalid environment variable, even without URXE_LOG, and fail: a
 * program must not run without the interposer that the user requested.
 */
static const struct pabi_ops *interposers_refuse(const char *variable,
						 const char *why)
{
	int saved = errno;

	fprintf(stderr, "urxe: no device: %s: %s\n", variable, why);
	errno = saved;
	return urxe_fail(-EINVAL, variable);
}

const struct pabi_ops *interposers_ops(void)
{
	if (!adversary_of_process())
		return interposers_refuse("URXE_ADVERSARY", adversary_why());
	if (!faults_of_process())
		return interposers_refuse("URXE_FAULTS", faults_why());
	if (timing_why())
		return interposers_refuse("URXE_TIMING", timing_why());
	if (*wire_why())
		return interposers_refuse("URXE_WIRE", wire_why());
	pthread_once(&once, interposers_install);
	if (refused)
		return urxe_fail(
			refused,
			"opening the device with URXE_CHECK or URXE_TRACE");
	return &entered;
}

int interposers_open(const struct urxe_context *ctx)
{
	struct faults *f = faults_of_process();

	return f && f->n ? fault_open(f, ctx) : 0;
}

void interposers_opened(struct urxe_context *ctx)
{
	const struct adversary *a = adversary_of_process();
	struct faults *f = faults_of_process();

	if (a && a->on)
		adversary_opened(a, ctx);
	if (f && f->n)
		fault_opened(f, ctx);
	recorder_opened(ctx);
	wire_opened(ctx);
}

void interposers_closing(struct urxe_context *ctx)
{
	wire_closing(ctx);
}

void interposers_after_fork(struct urxe_context *ctx)
{
	wire_after_fork(ctx);
}
