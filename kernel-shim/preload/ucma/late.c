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
 * All decisions are seeded random numbers (chaos/chance.h), one sequence for
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
 * Draw for the next occurrence of @kind in this process whether @knob applies
 * to it.  *c and *nth: its random sequence, and its index in that.
 */
static bool late_meets(uint32_t kind, enum adversary_knob knob,
		       struct chance *c, uint64_t *nth)
{
	static _Atomic uint64_t turns[RETURN + 1];
	const struct adversary *a = adversary_of_process();

	*c = chance_part(chance_named(a->chance, "rdma_cm"), kind);
	*nth = fetch_add_relaxed(&turns[kind], 1);
	return adversary_meets(a, *c, knob, *nth);
}

/* cm.late: delay of an event in ns, up to 6.4 ms; 0: none. */
static uint64_t late_event(uint32_t event)
{
	struct chance c;
	uint64_t nth;

	if (event >= KINDS || !late_meets(event, KNOB_cm, &c, &nth))
		return 0;
	return chance_ns(c, KNOBS + KNOB_cm, nth, 6);
}

/* cm.overtakes: whether DISCONNECTED may precede receives not yet polled. */
static bool late_data(void)
{
	struct chance c;
	uint64_t nth;

	return late_meets(DATA, KNOB_cm, &c, &nth);
}

uint64_t ucma_meet_early(void)
{
	const struct adversary *a = adversary_of_process();
	struct chance c;
	uint64_t nth;

	if (!a || !a->on || !late_meets(RETURN, KNOB_early, &c, &nth))
		return 0;
	return chance_ns(c, KNOBS + KNOB_early, nth, 5);
}

void ucma_meet(struct cm *cm)
{
	const struct adversary *a = adversary_of_process();

	if (!a || !a->on || !a->knob[KNOB_cm])
		return;
	cm->late = late_event;
	cm->overtakes = late_data;
}
