/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef URXE_DATA_IN_ORDER_H
#define URXE_DATA_IN_ORDER_H

#include <infiniband/verbs.h>

/*
 * No guarantee, for any operation.  Mapped memory gets the end of a message
 * last (transfer.h), which is what programs poll for, but before it bytes
 * arrive as memcpy likes; process_vm_writev promises nothing; and a small
 * SEND is placed when its completion is polled.  Which way a message goes is
 * a matter of the MR, not of the QP that is asked.
 */
int urxe_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
				uint32_t flags);

#endif
