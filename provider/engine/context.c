// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts: opening and closing the engine's part of an ibv_context.
 *
 * abi/context.c calls context_open() for ibv_open_device and for an imported
 * context, and context_close() for ibv_close_device.  context_join() is
 * called for each MR: it enters this process in the arena's list of processes
 * that have memory in the context, so that peers can check whether the
 * process that a key names is alive.  The list has room for URXE_MEMBERS
 * processes next to the opener; entries of dead processes are reused.
 *
 * Functions return 0 or -errno.
 */
#include <errno.h>

#include "fabric/profile.h"
#include "engine/copy/bounce.h"
#include "engine/copy/nofault.h"
#include "context.h"
#include "engine/mem/maps.h"
#include "engine/mem/peer.h"
#include "engine/core/process.h"
#include "engine/exec/round.h"
#include "engine/run/service.h"

int context_open(struct urxe_context *ctx, struct urxe_fabric *f, int cmd_fd)
{
	int ret;

	ctx->fabric = f;
	ctx->round = round_run;
	maps_prepare();
	nofault_install();
	ret = process_publish_liveness(f);
	if (ret)
		return ret;
	ret = dm_heap_map(f);
	if (ret)
		return ret;
	ret = arena_map(cmd_fd, &ctx->arena);
	if (ret)
		return ret;
	ret = peer_new_self(f, ctx->arena, &ctx->self);
	if (ret)
		goto err_unmap;
	ctx->cmd_fd = cmd_fd;
	ctx->slot = ctx->arena->slot;
	ctx->gen = ctx->arena->gen;
	ctx->hca = hca_at(f->dev, ctx->arena->hca);
	ctx->device = hca_index(f->dev, ctx->hca);
	profile_copy(&ctx->profile, &ctx->hca->profile);
	if (ctx->arena->pid == urxe_pid && !ctx->self->foreign_pids)
		store_relaxed(&ctx->arena->opener, process_id(f));
	store_relaxed(&ctx->recovered_gen, load_relaxed(&f->dev->recover_gen));
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_cond_init(&ctx->unpinned, NULL);
	if (ctx->arena->pid != urxe_pid || ctx->self->foreign_pids)
		bounce_expose(ctx); /* imported: none of our memory yet */
	return 0;

err_unmap:
	arena_unmap(ctx->arena);
	return ret;
}

void context_close(struct urxe_context *ctx)
{
	service_stop(ctx);
	bounce_stop(ctx);
	maps_forget(); /* other contexts open it again */
	peer_put(ctx->self);
	pthread_cond_destroy(&ctx->unpinned);
	pthread_mutex_destroy(&ctx->lock);
}

int context_join(struct urxe_context *ctx)
{
	uint32_t i, id, me = process_id(ctx->fabric);
	struct urxe_arena *a = ctx->arena;

	/* the PID of a process in another PID namespace is of no use here */
	if (ctx->self->foreign_pids || load_relaxed(&a->opener) == me)
		return 0;
	if (!me)
		return -ENOMEM;
	for (i = 0; i < URXE_MEMBERS; i++)
		if (load_relaxed(&a->member[i]) == me)
			return 0;
	for (i = 0; i < URXE_MEMBERS; i++) {
		id = load_relaxed(&a->member[i]);
		if ((!id || process_is_dead(ctx->fabric, id)) &&
		    cas_acq_rel(&a->member[i], &id, me))
			return 0;
	}
	return fabric_fail(
		ENOMEM,
		"at most %d processes other than the opener can register memory in a context",
		URXE_MEMBERS);
}
