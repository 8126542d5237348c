/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

int rdma_destroy_id(void *id);
int rdma_get_cm_event(void *channel, void **event);

/* The plug-in's; returns which librdmacm it has called. */
int plugin_call(void);
