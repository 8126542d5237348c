/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Taking things away from requesters that may be using them.
 *
 * A requester raises its guard (dev->guard[], made odd by a seq_cst
 * exchange), reads keys and connection words (seq_cst), touches memory, and
 * lowers the guard (release).  Whoever takes something away clears its word
 * (seq_cst store) and then reads the guards (seq_cst).  In the single order
 * of these four accesses either the requester's read comes after the clearing
 * and it keeps out, or its raising comes before the reading and it is waited
 * for.  A guard that changed once has left; a guard whose context is dead
 * will never be used again, but what it asked a bouncer to do may be under
 * way: those are waited for, too (bounce.h).
 */
#ifndef URXE_QUIESCE_H
#define URXE_QUIESCE_H

#include "context.h"

static inline void guard_raise(struct urxe_guard *g)
{
	atomic_exchange_explicit(
		&g->seq,
		atomic_load_explicit(&g->seq, memory_order_relaxed) | 1,
		memory_order_seq_cst);
}

static inline void guard_lower(struct urxe_guard *g)
{
	atomic_store_explicit(
		&g->seq,
		atomic_load_explicit(&g->seq, memory_order_relaxed) + 1,
		memory_order_release);
}

/* Wait until every requester of the fabric has left what it is in now. */
void quiesce_guards(struct urxe_fabric *f);
/*
 * The same for the pollers of ctx, who place small messages and look up QPs
 * and SRQs: each is inside its CQ's gate meanwhile.
 */
void quiesce(struct urxe_context *ctx);
/* Is QP qpn's requester executing, and alive? */
bool guard_busy(struct urxe_fabric *f, uint32_t qpn);

#endif
