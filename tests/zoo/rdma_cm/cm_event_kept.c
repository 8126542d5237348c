// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <poll.h>

#include "cm.h"

PROGRAM(.name = "cm-event-kept",
	.wrong =
		"an rdma_cm_id is destroyed, although one of its events was not acknowledged",
	.seen = "linux-rdma/perftest#60", .found = "any run", .hangs = true)
{
	struct rdma_cm_event *event;
	struct pollfd p;
	struct cm c;

	cm_open(&c);
	p = (struct pollfd){ .fd = c.client.chan->fd, .events = POLLIN };
	poll(&p, 1, -1);
	expect(!rdma_get_cm_event(c.client.chan, &event),
	       "rdma_get_cm_event fails");
	expect(event->event == RDMA_CM_EVENT_ADDR_RESOLVED,
	       "the event is not ADDR_RESOLVED");
	if (corrected)
		rdma_ack_cm_event(event);
	rdma_destroy_id(c.client.id);
}
