/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where in struct ibv_qp_ex the calls are that joined it last: an installed
 * header may end before them, and so may the struct of the libibverbs that runs.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>

#define SLOT_ATOMIC_WRITE \
	(offsetof(struct ibv_qp_ex, wr_abort) + sizeof(void (*)(void)))
#define SLOT_FLUSH (SLOT_ATOMIC_WRITE + sizeof(void (*)(void)))
