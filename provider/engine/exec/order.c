// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Table of Work Request Operation Ordering, IB 10.8.3.3. ORDER_ALWAYS: the
 * second WR waits for the first one. ORDER_FENCE: only if it has the fence
 * indicator.
 */
#include "order.h"

#define A ORDER_ALWAYS
#define F ORDER_FENCE

/* order_table[first][second] */
const uint8_t order_table[ORDER_CLASSES][ORDER_CLASSES] = {
	/*		   Send Bind Write Read Atomic Extended */
	[ORDER_SEND] = { A, A, A, A, A, A },
	[ORDER_BIND] = { A, A, A, A, A, A },
	[ORDER_WRITE] = { A, A, A, A, A, A },
	[ORDER_READ] = { F, F, F, A, F, A },
	[ORDER_ATOMIC] = { F, F, F, A, A, A },
	[ORDER_EXTENDED] = { A, A, A, A, A, A },
};

enum order_class order_class_of(uint8_t opcode)
{
	switch (opcode) {
	case IBV_WR_BIND_MW:
	case IBV_WR_LOCAL_INV:
		return ORDER_BIND;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return ORDER_WRITE;
	case IBV_WR_RDMA_READ:
		return ORDER_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return ORDER_ATOMIC;
	case URXE_WR_FLUSH:
	case URXE_WR_ATOMIC_WRITE:
		return ORDER_EXTENDED;
	}
	return ORDER_SEND;
}
