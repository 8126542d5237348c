// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Imitates librdmacm: its functions return COPY, the number of the library.
 */
#include "fakerdma.h"

int rdma_destroy_id(void *id)
{
	return id ? COPY : -1;
}

int rdma_get_cm_event(void *channel, void **event)
{
	return channel && event ? COPY : -1;
}
