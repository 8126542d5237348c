// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Asynchronous events that come late: behind the completions and changes of
 * state that they tell of.  What is raised for one of a context's objects is
 * kept, and its service thread writes it when the time has come.
 */
#include "engine/event.h"
#include "met.h"
#include "parts.h"
#include "verbs/context.h"

static const struct adversary *with;

/* 0.1 ms, or twice that, or twice that ... seldom 3.2 ms. */
static uint64_t async_late(struct urxe_context *ctx)
{
	struct met *m = met_find(with, MET_CONTEXT, to_ibv(ctx));
	uint64_t nth;

	return met_turn(with, m, KNOB_async, &nth) ?
		       met_while(m, KNOB_async, nth) :
		       0;
}

void async_begin(struct ibv_context *ibctx)
{
	if (with->knob[KNOB_async])
		event_make_late(to_uctx(ibctx), async_late);
}

void async_wrap(const struct adversary *a)
{
	with = a;
}
