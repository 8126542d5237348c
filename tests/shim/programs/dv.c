// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Print whether the direct verbs of libmlx5 and libefa accept the first RDMA
 * device.  A profile with the ID of their vendor must not make them do so.
 */
#include <infiniband/efadv.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct efadv_device_attr attr;

	if (!ctx)
		return 1;
	printf("%smlx5, %sefa\n", mlx5dv_is_supported(*list) ? "" : "not ",
	       efadv_query_device(ctx, &attr, sizeof(attr)) ? "not " : "");
	ibv_close_device(ctx);
	ibv_free_device_list(list);
	return 0;
}
