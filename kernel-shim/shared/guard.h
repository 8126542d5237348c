/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Guards: taking things away from requesters that may be using them.
 *
 * A requester raises its guard (a word of presence in dev->guard[]), reads
 * keys and connection words (seq_cst), touches memory, and lowers the guard.
 * Whoever takes something away clears its word (seq_cst) and then waits for the
 * guards; base/presence.h has the argument.  A guard whose context is dead will
 * never be used again, but what it asked a bouncer to do may be under way:
 * those are waited for, too (bounce_slot.h).
 */
#pragma once

#include "layout.h"

static inline void guard_raise(struct urxe_guard *g)
{
	presence_enter(&g->requester);
}

static inline void guard_lower(struct urxe_guard *g)
{
	presence_leave(&g->requester);
}
