// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <poll.h>

#include "cm.h"

ANIMAL(.name = "cm-event-kept",
       .wrong = "an event of rdma_cm is not acknowledged, and its id destroyed",
       .seen = "linux-rdma/perftest#60", .found = "any run", .hangs = true)
{
	struct rdma_cm_event *event;
	struct pollfd p;
	struct cm c;

	cm_open(&c);
	p = (struct pollfd){ .fd = c.client.chan->fd, .events = POLLIN };
	poll(&p, 1, -1);
	expect(!rdma_get_cm_event(c.client.chan, &event), "no event");
	expect(event->event == RDMA_CM_EVENT_ADDR_RESOLVED, "another event");
	if (corrected)
		rdma_ack_cm_event(event);
	rdma_destroy_id(c.client.id);
}
