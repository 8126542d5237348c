// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <poll.h>

#include "cm.h"

/* librdmacm frees the event, and libc writes its own words there. */
ANIMAL(.name = "cm-event-used",
       .wrong = "an event of rdma_cm is used after it was acknowledged",
       .seen = "-", .found = "any run")
{
	struct rdma_cm_event *event;
	struct pollfd p;
	struct cm c;

	cm_open(&c);
	p = (struct pollfd){ .fd = c.client.chan->fd, .events = POLLIN };
	poll(&p, 1, -1);
	expect(!rdma_get_cm_event(c.client.chan, &event), "no event");
	if (corrected)
		expect(event->id == c.client.id, "it is of another id");
	rdma_ack_cm_event(event);
	if (!corrected)
		expect(event->id == c.client.id, "it is of another id");
	rdma_destroy_id(c.client.id);
}
