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

/* When an object was left. */
enum leaving { AT_CLOSE, AT_EXIT };

static const char *const leaving_text[] = {
	[AT_CLOSE] = "its device was closed",
	[AT_EXIT] = "the process ended",
};

static void leave_tell(struct shadow *s, enum leaving when)
{
	char name[FINDING_NAME];
	struct finding f = { .rule = RULE_object_left,
			     .at = &s->made,
			     .at_is = "made",
			     .at_exit = when == AT_EXIT };

	unacked_look(s, when == AT_EXIT);
	f.object = shadow_name(s, name);
	finding_tell(&f, "was not destroyed when %s", leaving_text[when]);
}

/*
 * failed: the program did, and gave up.  What it left is no wonder, and would
 * hide what it says itself; not so a WR's error that it did not look at.
 */
static void leave_look(struct shadow *s, enum leaving when, bool failed)
{
	if (s->inherited)
		return;
	if (s->type == SHADOW_QP) {
		limits_end(to_shadow_qp(s));
		unpolled_look(to_shadow_qp(s), failed);
	}
	if (!failed)
		leave_tell(s, when);
}

/* What has its stack told already is counted. */
static void leave_end(int status)
{
	struct shadow *s;

	if (!referee_lock_at_last())
		return;
	for (s = shadow_first(); s; s = s->next)
		leave_look(s, AT_EXIT, status != 0);
	referee_unlock();
	finding_end();
}

/* Without the preload library nobody knows the status. */
static void leave_end_alone(void)
{
	leave_end(0);
}

/*
 * When the program's and its libraries' own handlers and destructors are over,
 * which may destroy objects still: the preload library knows when that is.
 */
void leave_watch(void)
{
	void (*call_last)(void (*)(int));

	*(void **)&call_last = dlsym(RTLD_DEFAULT, "urxe_call_last");
	if (call_last)
		call_last(leave_end);
	else
		atexit(leave_end_alone);
}

static void leave_objects(const struct ibv_context *context,
			  enum shadow_type first, enum shadow_type last)
{
	struct shadow *s, *prev;

	for (s = shadow_last(); s; s = prev) {
		prev = s->prev;
		if (s->context != context || s->type < first || s->type > last)
			continue;
		leave_look(s, AT_CLOSE, false);
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
