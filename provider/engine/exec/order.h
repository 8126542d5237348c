/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work Request Operation Ordering (IB 10.8.3.3): which WRs of a send queue
 * may be executed before an earlier WR is done.
 */
#pragma once

#include "engine/qp/sq.h"

/* Is second ordered after first always, or only if it has a fence? */
enum order { ORDER_ALWAYS, ORDER_FENCE };

/* Rows and columns of the table; LOCAL_INV is in the class of BIND_MW. */
enum order_class {
	ORDER_SEND,
	ORDER_BIND,
	ORDER_WRITE,
	ORDER_READ,
	ORDER_ATOMIC,
	ORDER_EXTENDED, /* FLUSH, ATOMIC WRITE (IB A19): always in order */
	ORDER_CLASSES
};

/* enum order by class of the first and of the second WR. */
extern const uint8_t order_table[ORDER_CLASSES][ORDER_CLASSES];
enum order_class order_class_of(uint8_t opcode);

/* Must second, which was posted later, wait until first is done? */
static inline bool order_holds(const struct urxe_wqe *first,
			       const struct urxe_wqe *second)
{
	return order_table[order_class_of(first->opcode)]
			  [order_class_of(second->opcode)] == ORDER_ALWAYS ||
	       second->flags & IBV_SEND_FENCE;
}
