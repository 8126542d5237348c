// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rooms that are entered before a verb is served, if they are asked for. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "adversary/adversary.h"
#include "adversary/fault.h"
#include "context.h"
#include "engine/log.h"
#include "recorder/recorder.h"
#include "referee/referee.h"
#include "wire/wire.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct pabi_ops entered;
static int refused; /* by a room: -errno */

static void rooms_enter(void)
{
	const struct adversary *a = adversary_of_process();
	struct faults *f = faults_of_process();

	entered = urxe_ops;
	if (wire_address())
		wire_wrap(&entered);
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

/* Said unasked: who wants an adversary must not believe to have met it. */
static const struct pabi_ops *rooms_refuse(const char *variable,
					   const char *why)
{
	int saved = errno;

	fprintf(stderr, "urxe: no device: %s: %s\n", variable, why);
	errno = saved;
	return urxe_fail(-EINVAL, variable);
}

const struct pabi_ops *rooms_ops(void)
{
	struct faults *f = faults_of_process();
	int err;

	if (!adversary_of_process())
		return rooms_refuse("URXE_ADVERSARY", adversary_why());
	if (!f)
		return rooms_refuse("URXE_FAULTS", faults_why());
	if (*wire_why())
		return rooms_refuse("URXE_WIRE", wire_why());
	err = f->n ? fault_open(f) : 0;
	if (err)
		return urxe_fail(-err, "opening the device");
	pthread_once(&once, rooms_enter);
	if (refused)
		return urxe_fail(refused, "a room");
	return &entered;
}

void rooms_opened(struct urxe_context *ctx)
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

void rooms_closing(struct urxe_context *ctx)
{
	wire_closing(ctx);
}

void rooms_after_fork(struct urxe_context *ctx)
{
	wire_after_fork(ctx);
}
