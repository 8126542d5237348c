/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work Request Operation Ordering: which WR of a queue may pass which
 * (IB 10.8.3.3).
 */
#pragma once

#include "sq.h"

enum order { ORDER_ALWAYS, ORDER_FENCE /* only if second has a fence */ };

/* Columns and rows of the table; a LOCAL_INV is as a BIND_MW. */
enum order_class {
	ORDER_SEND,
	ORDER_BIND,
	ORDER_WRITE,
	ORDER_READ,
	ORDER_ATOMIC,
	ORDER_EXTENDED, /* FLUSH and ATOMIC WRITE (annex A19): always in order */
	ORDER_CLASSES
};

extern const uint8_t order_table[ORDER_CLASSES][ORDER_CLASSES];
enum order_class order_class_of(uint8_t opcode);

/* Must second, which was posted later, not be seen before first is done? */
static inline bool order_holds(const struct urxe_wqe *first,
			       const struct urxe_wqe *second)
{
	return order_table[order_class_of(first->opcode)]
			  [order_class_of(second->opcode)] == ORDER_ALWAYS ||
	       second->flags & IBV_SEND_FENCE;
}
