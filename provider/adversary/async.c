// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The option "async": asynchronous events are delivered late, after the
 * completions and state changes that they announce (IB 11.6.3).
 *
 * An event for an object of the context is kept in the context's arena. The
 * service thread, or a thread that polls or fetches an event, writes it to
 * the event FIFO after the delay (engine/cq/event.h).
 */
#include "engine/cq/event.h"
#include "object_seed.h"
#include "parts.h"
#include "verbs/context.h"

static const struct adversary *with;

/*
 * Return the delay of the next batch of kept events of @ctx in ns: 0, or 0.1
 * ms to 3.2 ms, where each doubling is half as likely. Called by
 * event_resend().
 */
static uint64_t async_delay(struct urxe_context *ctx)
{
	struct object_seed *m =
		object_seed_find(with, OBJECT_CONTEXT, to_ibv(ctx));
	uint64_t nth;

	return object_seed_decide(with, m, ADV_async, &nth) ?
		       object_seed_delay(m, ADV_async, nth) :
		       0;
}

void async_begin(struct ibv_context *ibctx)
{
	if (with->option[ADV_async])
		event_delay_async(to_uctx(ibctx), async_delay);
}

void async_wrap(const struct adversary *a)
{
	with = a;
}
