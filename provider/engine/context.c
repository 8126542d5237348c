// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "bounce.h"
#include "context.h"
#include "peer.h"
#include "process.h"
#include "service.h"

int context_open(struct urxe_context *ctx, struct urxe_fabric *f, int cmd_fd)
{
	int ret;

	ctx->fabric = f;
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
	process_show_life(f);
	if (ctx->arena->pid == urxe_pid && !ctx->self->foreign_pids)
		store_relaxed(&ctx->arena->opener, process_id(f));
	store_relaxed(&ctx->deaths, load_relaxed(&f->dev->deaths));
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_cond_init(&ctx->unpinned, NULL);
	if (ctx->arena->pid != urxe_pid || ctx->self->foreign_pids)
		bounce_expose(ctx); /* imported; it has no memory of ours yet */
	return 0;

err_unmap:
	arena_unmap(ctx->arena);
	return ret;
}

void context_close(struct urxe_context *ctx)
{
	service_stop(ctx);
	bounce_stop(ctx);
	peer_put(ctx->self);
	pthread_cond_destroy(&ctx->unpinned);
	pthread_mutex_destroy(&ctx->lock);
}
