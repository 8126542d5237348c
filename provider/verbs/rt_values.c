// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>

#include "cq.h"
#include "rt_values.h"

int urxe_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	(void)ctx;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		/* clients take the raw counter out of tv_nsec */
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)cq_clock();
	}
	return 0;
}
