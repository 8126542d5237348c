// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "adversary.h"
#include "parts.h"

void adversary_wrap(struct pabi_ops *ops, const struct adversary *a)
{
	meet_wrap(ops, a);
	carry_wrap(ops, a);
	recv_wrap(ops, a);
	wake_wrap(ops, a);
	slow_wrap(ops, a);
}
