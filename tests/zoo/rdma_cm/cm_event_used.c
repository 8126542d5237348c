// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <poll.h>

#include "cm.h"

/* librdmacm frees the event, and free() overwrites part of it. */
PROGRAM(.name = "cm-event-used",
	.wrong = "an rdma_cm event is used after it was acknowledged",
	.seen = "-", .found = "any run")
{
	struct rdma_cm_event *event;
	struct pollfd p;
	struct cm c;

	cm_open(&c);
	p = (struct pollfd){ .fd = c.client.chan->fd, .events = POLLIN };
	poll(&p, 1, -1);
	expect(!rdma_get_cm_event(c.client.chan, &event),
	       "rdma_get_cm_event fails");
	if (corrected)
		expect(event->id == c.client.id,
		       "the event is not for this id");
	rdma_ack_cm_event(event);
	if (!corrected)
		expect(event->id == c.client.id,
		       "the event is not for this id");
	rdma_destroy_id(c.client.id);
}
