// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A plug-in that calls a librdmacm of its own (fakerdma.c). */
#include "fakerdma.h"

int plugin_call(void)
{
	void *event, *id = &event;
	const int copy = rdma_destroy_id(id);

	return rdma_get_cm_event(id, &event) == copy ? copy : -1;
}
