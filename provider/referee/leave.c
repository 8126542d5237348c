// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Leak detection, and the referee's work when the process exits: it reports
 * objects that were not destroyed, and prints the counts of findings.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "leave.h"
#include "limits.h"
#include "memory.h"
#include "referee.h"
#include "unpolled.h"

/* The time at which an object was left. */
enum leaving { AT_CLOSE, AT_EXIT };

static const char *const leaving_text[] = {
	[AT_CLOSE] = "its device was closed",
	[AT_EXIT] = "the process ended",
};

static void leave_report(struct shadow *s, enum leaving when)
{
	char name[FINDING_NAME];
	struct finding f = { .rule = RULE_object_left,
			     .at = &s->made,
			     .at_is = "created",
			     .at_exit = when == AT_EXIT };

	unacked_check(s, when == AT_EXIT);
	f.object = shadow_name(s, name);
	finding_report(&f, "was not destroyed before %s", leaving_text[when]);
}

/*
 * Report what is wrong with an object that is left.  @failed: the process
 * exits with an error.  Then leaks are expected, and their reports would hide
 * the program's own messages; only errors of WRs that were not polled are
 * reported.
 */
static void leave_check_object(struct shadow *s, enum leaving when, bool failed)
{
	if (s->inherited)
		return;
	if (s->type == SHADOW_QP) {
		limits_end(to_shadow_qp(s));
		unpolled_check(to_shadow_qp(s), failed);
	}
	if (!failed)
		leave_report(s, when);
}

/* Check all objects when the process exits. */
static void leave_end(int status)
{
	struct shadow *s;

	if (!referee_lock_at_last())
		return;
	for (s = shadow_first(); s; s = s->next)
		leave_check_object(s, AT_EXIT, status != 0);
	referee_unlock();
	finding_end();
}

/* Without the preload library the exit status is not known. */
static void leave_end_alone(void)
{
	leave_end(0);
}

/*
 * Exit handlers and destructors of the program and its libraries may still
 * destroy objects.  The preload library calls leave_end() after all of them.
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

/* Report and free the context's shadows of these types, newest first. */
static void leave_objects(const struct ibv_context *context,
			  enum shadow_type first, enum shadow_type last)
{
	struct shadow *s, *prev;

	for (s = shadow_last(); s; s = prev) {
		prev = s->prev;
		if (s->context != context || s->type < first || s->type > last)
			continue;
		leave_check_object(s, AT_CLOSE, false);
		shadow_free(shadow_take_out(s->type, s->handle));
	}
}

void leave_context(struct ibv_context *context)
{
	referee_lock();
	/* a QP's shadow points to those of its CQs and SRQ, so QPs first */
	leave_objects(context, SHADOW_QP, SHADOW_QP);
	leave_objects(context, SHADOW_SRQ, SHADOW_SRQ);
	leave_objects(context, 0, SHADOW_TYPES_COUNT);
	memory_leaves(context);
	referee_unlock();
}
