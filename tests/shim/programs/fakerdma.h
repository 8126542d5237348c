/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The functions of the imitated librdmacm, and of the plug-in (plugin.c). */
#pragma once

int rdma_destroy_id(void *id);
int rdma_get_cm_event(void *channel, void **event);

/*
 * Function of the plug-in: return the number of the librdmacm it called, or
 * -1.
 */
int plugin_call(void);
