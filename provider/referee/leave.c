// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "leave.h"
#include "limits.h"
#include "memory.h"
#include "referee.h"
#include "unpolled.h"

static void leave_tell(struct shadow *s, const char *when)
{
	char name[FINDING_NAME];
	struct finding f = { .rule = RULE_object_left,
			     .at = &s->made,
			     .at_is = "made" };

	if (s->inherited)
		return;
	if (s->type == SHADOW_QP) {
		limits_end(to_shadow_qp(s));
		unpolled_look(to_shadow_qp(s));
	}
	unacked_look(s);
	f.object = shadow_name(s, name);
	finding_tell(&f, "was not destroyed when %s", when);
}

/* What has its stack told already is counted. */
static void leave_end(void)
{
	struct shadow *s;

	referee_lock();
	for (s = shadow_first(); s; s = s->next)
		leave_tell(s, "the process ended");
	referee_unlock();
	finding_end();
}

/*
 * When the program's and its libraries' own handlers and destructors are over,
 * which may destroy objects still: the preload library knows when that is.
 */
void leave_watch(void)
{
	void (*call_last)(void (*)(void));

	*(void **)&call_last = dlsym(RTLD_DEFAULT, "urxe_call_last");
	if (call_last)
		call_last(leave_end);
	else
		atexit(leave_end);
}

static void leave_objects(const struct ibv_context *context,
			  enum shadow_type first, enum shadow_type last)
{
	struct shadow *s, *prev;

	for (s = shadow_last(); s; s = prev) {
		prev = s->prev;
		if (s->context != context || s->type < first || s->type > last)
			continue;
		leave_tell(s, "its device was closed");
		shadow_free(shadow_take_out(s->type, s->handle));
	}
}

void leave_context(struct ibv_context *context)
{
	referee_lock();
	/* who uses others goes first: a QP's shadow names CQs and an SRQ */
	leave_objects(context, SHADOW_QP, SHADOW_QP);
	leave_objects(context, SHADOW_SRQ, SHADOW_SRQ);
	leave_objects(context, 0, SHADOW_TYPES_COUNT);
	memory_leaves(context);
	referee_unlock();
}
