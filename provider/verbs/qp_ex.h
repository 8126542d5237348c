/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Offsets in struct ibv_qp_ex of the calls that were added last.  The
 * installed header, and the struct of the running libibverbs, may end before
 * them.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>

#define SLOT_ATOMIC_WRITE \
	(offsetof(struct ibv_qp_ex, wr_abort) + sizeof(void (*)(void)))
#define SLOT_FLUSH (SLOT_ATOMIC_WRITE + sizeof(void (*)(void)))
