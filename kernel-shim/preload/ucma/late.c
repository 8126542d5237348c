// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the adversary does to events of rdma_cm: each may come late (cm/event.c
 * keeps an id's in order), so that those of different ids overtake each other,
 * ESTABLISHED comes after the first messages, and the thread that waits for
 * events learns of an end when others have long gone on.  And a DISCONNECTED
 * may come before a receive that is still to be polled.  An event that a
 * command causes may reach other threads before the command returns
 * (returned.c).
 */
#include "chaos/adversary.h"
#include "command.h"

#define KINDS (CM_EV_INTERNAL + 1)
#define DATA KINDS /* not an event: overtaken by one */
#define RETURN (KINDS + 1) /* nor this: of a command after its events */

/* The how manieth of them in this process was met; its chance. */
static bool late_meets(uint32_t kind, enum adversary_knob knob,
		       struct chance *c, uint64_t *nth)
{
	static _Atomic uint64_t turns[RETURN + 1];
	const struct adversary *a = adversary_of_process();

	*c = chance_part(chance_named(a->chance, "rdma_cm"), kind);
	*nth = fetch_add_relaxed(&turns[kind], 1);
	return adversary_meets(a, *c, knob, *nth);
}

/* How late, up to 6.4 ms; 0: not. */
static uint64_t late_event(uint32_t event)
{
	struct chance c;
	uint64_t nth;

	if (event >= KINDS || !late_meets(event, KNOB_cm, &c, &nth))
		return 0;
	return chance_ns(c, KNOBS + KNOB_cm, nth, 6);
}

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
