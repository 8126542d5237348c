/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Taking things away from requesters that may be using them.
 *
 * A requester raises its guard (a word of presence in dev->guard[]), reads
 * keys and connection words (seq_cst), touches memory, and lowers the guard.
 * Whoever takes something away clears its word (seq_cst) and then waits for the
 * guards; base/presence.h has the argument.  A guard whose context is dead will
 * never be used again, but what it asked a bouncer to do may be under way:
 * those are waited for, too (bounce.h).
 */
#ifndef URXE_QUIESCE_H
#define URXE_QUIESCE_H

#include "context.h"

static inline void guard_raise(struct urxe_guard *g)
{
	presence_enter(&g->requester);
}

static inline void guard_lower(struct urxe_guard *g)
{
	presence_leave(&g->requester);
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
