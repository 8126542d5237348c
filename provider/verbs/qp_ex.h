/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* ibv_create_qp_ex, and posting by ibv_wr_start ... ibv_wr_complete. */
#ifndef URXE_QP_EX_H
#define URXE_QP_EX_H

#include <infiniband/verbs.h>

struct ibv_qp *urxe_create_qp_ex(struct ibv_context *ctx,
				 struct ibv_qp_init_attr_ex *init);

#endif
