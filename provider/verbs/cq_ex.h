/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Extended completion queues: polled field by field. */
#ifndef URXE_CQ_EX_H
#define URXE_CQ_EX_H

#include <infiniband/verbs.h>

struct ibv_cq_ex *urxe_create_cq_ex(struct ibv_context *ctx,
				    struct ibv_cq_init_attr_ex *attr);

#endif
