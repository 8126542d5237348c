// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The adversary's options for events of rdma_cm (docs/adversary.md):
 *
 *	cm	Delay an event.  Events of one id stay in order (cm/event.c),
 *		but those of different ids overtake each other, ESTABLISHED
 *		arrives after the first messages, and the event thread learns
 *		of a disconnect after other threads have continued.
 *		Also, DISCONNECTED may arrive before a receive that has not
 *		been polled yet.
 *	early	Delay the return of a command, so that other threads take its
 *		events first (returned.c).
 *
 * All decisions are seeded random numbers (chaos/random.h), one sequence for
 * each kind of event.
 */
#include "chaos/adversary.h"
#include "command.h"

#define KINDS (CM_EV_INTERNAL + 1)
/* Two kinds that are not events: a receive that DISCONNECTED overtakes ... */
#define DATA KINDS
/* ... and the return of a command */
#define RETURN (KINDS + 1)

/*
 * Draw for the next occurrence of @kind in this process whether @option applies
 * to it.  *c and *nth: its random sequence, and its index in that.
 */
static bool delay_applies(uint32_t kind, enum adversary_option option,
			  struct random_stream *c, uint64_t *nth)
{
	static _Atomic uint64_t decisions[RETURN + 1];
	const struct adversary *a = adversary_of_process();

	*c = random_part(random_named(a->random, "rdma_cm"), kind);
	*nth = fetch_add_relaxed(&decisions[kind], 1);
	return adversary_applies(a, *c, option, *nth);
}

/* cm.delay_of: delay of an event in ns, up to 6.4 ms; 0: none. */
static uint64_t delay_of_event(uint32_t event)
{
	struct random_stream c;
	uint64_t nth;

	if (event >= KINDS || !delay_applies(event, ADV_cm, &c, &nth))
		return 0;
	return random_ns(c, ADV_OPTIONS + ADV_cm, nth, 6);
}

/*
 * cm.disconnect_early: whether DISCONNECTED may precede receives not yet
 * polled.
 */
static bool disconnect_is_early(void)
{
	struct random_stream c;
	uint64_t nth;

	return delay_applies(DATA, ADV_cm, &c, &nth);
}

uint64_t ucma_delay_return(void)
{
	const struct adversary *a = adversary_of_process();
	struct random_stream c;
	uint64_t nth;

	if (!a || !a->on || !delay_applies(RETURN, ADV_early, &c, &nth))
		return 0;
	return random_ns(c, ADV_OPTIONS + ADV_early, nth, 5);
}

void ucma_install_delays(struct cm *cm)
{
	const struct adversary *a = adversary_of_process();

	if (!a || !a->on || !a->option[ADV_cm])
		return;
	cm->delay_of = delay_of_event;
	cm->disconnect_early = disconnect_is_early;
}
