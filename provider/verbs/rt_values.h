/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef URXE_RT_VALUES_H
#define URXE_RT_VALUES_H

#include <infiniband/verbs.h>

/* The raw clock, which completions are stamped with. */
int urxe_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);

#endif
