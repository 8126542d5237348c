/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the device and its port say of themselves. */
#ifndef URXE_DEVICE_H
#define URXE_DEVICE_H

#include <infiniband/verbs.h>

int urxe_query_device_ex(struct ibv_context *ctx,
			 const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size);
int urxe_query_port(struct ibv_context *ctx, uint8_t port,
		    struct ibv_port_attr *attr);
/* The raw clock, which completions are stamped with. */
int urxe_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
int urxe_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
				uint32_t flags);

#endif
