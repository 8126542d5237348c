// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Installation of the adversary's interposers (adversary.h). The interposer
 * that is installed last is called first.
 */
#include "adversary.h"
#include "attach.h"
#include "object_seed.h"
#include "parts.h"
#include "transport.h"
#include "verbs/context.h"

void adversary_wrap(struct pabi_ops *ops, const struct adversary *a)
{
	async_wrap(a);
	register_wrap(ops, a);
	attach_wrap(ops, transport_attach);
	recv_wrap(ops, a);
	wake_wrap(ops, a);
	slow_wrap(ops, a);
}

void adversary_opened(const struct adversary *a, struct urxe_context *ctx)
{
	object_seed_new(a, OBJECT_CONTEXT, to_ibv(ctx));
	undefined_opened(a, ctx);
}
