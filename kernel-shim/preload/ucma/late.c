// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the adversary does to events of rdma_cm: each may come late (cm/event.c
 * keeps an id's in order), so that those of different ids overtake each other,
 * ESTABLISHED comes after the first messages, and the thread that waits for
 * events learns of an end when others have long gone on.  And a DISCONNECTED
 * may come before a receive that is still to be polled.
 */
#include "chaos/adversary.h"
#include "command.h"

#define KINDS (CM_EV_INTERNAL + 1)
#define DATA KINDS /* not an event: overtaken by one */

/* The how manieth of them in this process was met; its chance. */
static bool late_meets(uint32_t kind, struct chance *c, uint64_t *nth)
{
	static _Atomic uint64_t turns[KINDS + 1];
	const struct adversary *a = adversary_of_process();

	*c = chance_part(chance_named(a->chance, "rdma_cm"), kind);
	*nth = fetch_add_relaxed(&turns[kind], 1);
	return adversary_meets(a, *c, KNOB_cm, *nth);
}

/* How late, up to 6.4 ms; 0: not. */
static uint64_t late_event(uint32_t event)
{
	struct chance c;
	uint64_t nth;

	if (event >= KINDS || !late_meets(event, &c, &nth))
		return 0;
	return chance_ns(c, KNOBS + KNOB_cm, nth, 6);
}

static bool late_data(void)
{
	struct chance c;
	uint64_t nth;

	return late_meets(DATA, &c, &nth);
}

void ucma_meet(struct cm *cm)
{
	const struct adversary *a = adversary_of_process();

	if (!a || !a->on || !a->knob[KNOB_cm])
		return;
	cm->late = late_event;
	cm->overtakes = late_data;
}
