// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cm.h"

PROGRAM(.name = "disconnected-first",
	.wrong =
		"after DISCONNECTED, the CQ is not polled, and the last message is lost",
	.seen = "ofiwg/libfabric#5228", .found = "any run")
{
	bool message = false;
	struct cm c;

	cm_open(&c);
	cm_connect(&c);
	cm_await(&c.server, RDMA_CM_EVENT_ESTABLISHED);
	cm_send(&c.client);
	rdma_disconnect(c.client.id);
	/* the server is late, and checks its events first */
	cm_await(&c.server, RDMA_CM_EVENT_DISCONNECTED);
	if (corrected)
		message = cm_receive(&c.server);
	expect(message, "the last message was not received");
}
