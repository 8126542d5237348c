// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rooms that are entered before a verb is served, if they are asked for. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "adversary/adversary.h"
#include "context.h"
#include "engine/log.h"
#include "referee/referee.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct pabi_ops entered;
static int refused; /* by a room: -errno */

static void rooms_enter(void)
{
	const struct adversary *a = adversary_of_process();

	entered = urxe_ops;
	if (a && a->on)
		adversary_wrap(&entered, a);
	refused = referee_wrap(&entered);
}

/* Said unasked: who wants an adversary must not believe to have met it. */
static const struct pabi_ops *rooms_refuse(void)
{
	int saved = errno;

	fprintf(stderr, "urxe: no device: URXE_ADVERSARY: %s\n",
		adversary_why());
	errno = saved;
	return urxe_fail(-EINVAL, "URXE_ADVERSARY");
}

const struct pabi_ops *rooms_ops(void)
{
	if (!adversary_of_process())
		return rooms_refuse();
	pthread_once(&once, rooms_enter);
	if (refused)
		return urxe_fail(refused, "URXE_CHECK");
	return &entered;
}
