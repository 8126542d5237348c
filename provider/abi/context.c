// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Opened devices. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "verbs/ah.h"
#include "engine/bounce.h"
#include "context.h"
#include "verbs/cq.h"
#include "verbs/cq_ex.h"
#include "verbs/cq_moderate.h"
#include "verbs/cq_resize.h"
#include "verbs/data_in_order.h"
#include "verbs/device.h"
#include "verbs/dm.h"
#include "verbs/event.h"
#include "verbs/mcast.h"
#include "engine/mem.h"
#include "verbs/import.h"
#include "verbs/mr.h"
#include "verbs/parent_domain.h"
#include "verbs/mw.h"
#include "verbs/odp.h"
#include "verbs/pd.h"
#include "engine/peer.h"
#include "verbs/qp.h"
#include "verbs/qp_ex.h"
#include "engine/retry.h"
#include "engine/rq.h"
#include "verbs/rt_values.h"
#include "engine/sq.h"
#include "verbs/srq.h"
#include "verbs/xrc.h"

static const struct pabi_entry ops[] = {
	PABI_ENTRY(advise_mr, urxe_advise_mr),
	PABI_ENTRY(alloc_dm, urxe_alloc_dm),
	PABI_ENTRY(alloc_mw, urxe_alloc_mw),
	PABI_ENTRY(alloc_null_mr, urxe_alloc_null_mr),
	PABI_ENTRY(alloc_parent_domain, urxe_alloc_parent_domain),
	PABI_ENTRY(alloc_pd, urxe_alloc_pd),
	PABI_ENTRY(alloc_td, urxe_alloc_td),
	PABI_ENTRY(attach_mcast, urxe_attach_mcast),
	PABI_ENTRY(bind_mw, urxe_bind_mw),
	PABI_ENTRY(close_xrcd, urxe_close_xrcd),
	PABI_ENTRY(cq_event, urxe_cq_event),
	PABI_ENTRY(create_ah, urxe_create_ah),
	PABI_ENTRY(create_cq, urxe_create_cq),
	PABI_ENTRY(create_cq_ex, urxe_create_cq_ex),
	PABI_ENTRY(create_qp, urxe_create_qp),
	PABI_ENTRY(create_qp_ex, urxe_create_qp_ex),
	PABI_ENTRY(create_srq, urxe_create_srq),
	PABI_ENTRY(create_srq_ex, urxe_create_srq_ex),
	PABI_ENTRY(dealloc_mw, urxe_dealloc_mw),
	PABI_ENTRY(dealloc_pd, urxe_dealloc_pd),
	PABI_ENTRY(dealloc_td, urxe_dealloc_td),
	PABI_ENTRY(dereg_mr, urxe_dereg_mr),
	PABI_ENTRY(destroy_ah, urxe_destroy_ah),
	PABI_ENTRY(destroy_cq, urxe_destroy_cq),
	PABI_ENTRY(destroy_qp, urxe_destroy_qp),
	PABI_ENTRY(destroy_srq, urxe_destroy_srq),
	PABI_ENTRY(detach_mcast, urxe_detach_mcast),
	PABI_ENTRY(free_context, urxe_free_context),
	PABI_ENTRY(free_dm, urxe_free_dm),
	PABI_ENTRY(get_srq_num, urxe_get_srq_num),
	PABI_ENTRY(import_dm, urxe_import_dm),
	PABI_ENTRY(import_mr, urxe_import_mr),
	PABI_ENTRY(import_pd, urxe_import_pd),
	PABI_ENTRY(modify_cq, urxe_modify_cq),
	PABI_ENTRY(modify_qp, urxe_modify_qp),
	PABI_ENTRY(modify_srq, urxe_modify_srq),
	PABI_ENTRY(open_qp, urxe_open_qp),
	PABI_ENTRY(open_xrcd, urxe_open_xrcd),
	PABI_ENTRY(poll_cq, urxe_poll_cq),
	PABI_ENTRY(post_recv, urxe_post_recv),
	PABI_ENTRY(post_send, urxe_post_send),
	PABI_ENTRY(post_srq_recv, urxe_post_srq_recv),
	PABI_ENTRY(query_device_ex, urxe_query_device_ex),
	PABI_ENTRY(query_port, urxe_query_port),
	PABI_ENTRY(query_qp, urxe_query_qp),
	PABI_ENTRY(query_qp_data_in_order, urxe_query_qp_data_in_order),
	PABI_ENTRY(query_rt_values, urxe_query_rt_values),
	PABI_ENTRY(query_srq, urxe_query_srq),
	PABI_ENTRY(reg_dm_mr, urxe_reg_dm_mr),
	PABI_ENTRY(reg_dmabuf_mr, urxe_reg_dmabuf_mr),
	PABI_ENTRY(reg_mr, urxe_reg_mr),
	PABI_ENTRY(reg_mr_ex, urxe_reg_mr_ex),
	PABI_ENTRY(req_notify_cq, urxe_req_notify_cq),
	PABI_ENTRY(rereg_mr, urxe_rereg_mr),
	PABI_ENTRY(resize_cq, urxe_resize_cq),
	PABI_ENTRY(unimport_dm, urxe_unimport_dm),
	PABI_ENTRY(unimport_mr, urxe_unimport_mr),
	PABI_ENTRY(unimport_pd, urxe_unimport_pd),
};

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urxe_context *contexts;

/*
 * fork() takes a picture of memory while other threads may be at work.  Our
 * service threads do it all under ctx->lock, and so do the verbs with our
 * lists, so holding those locks makes that part of the picture a sound one.
 * What peers see is in shared files and does not change.
 *
 * The locks of QPs, CQs and SRQs cannot be waited for here: the forking thread
 * may be between ibv_wr_start and ibv_wr_complete and hold one itself.  In the
 * child those of other threads, who do not exist there, are made anew.  What
 * they guard is private: queue indices, of which each step leaves a state that
 * the next caller can go on from.
 */
void urxe_before_fork(void)
{
	struct urxe_context *ctx;

	pthread_mutex_lock(&contexts_lock);
	for (ctx = contexts; ctx; ctx = ctx->next)
		pthread_mutex_lock(&ctx->lock);
	bounce_lock();
	peer_lock();
}

static void free_orphans(struct urxe_context *ctx)
{
	const pthread_t self = pthread_self();
	struct urxe_srq *srq;
	struct urxe_cq *cq;
	struct urxe_qp *qp;
	uint32_t i;

	for (cq = ctx->cqs; cq; cq = cq->next) {
		gate_after_fork(&cq->gate);
		if (!pthread_equal(atomic_load_explicit(&cq->batch_thread,
							memory_order_relaxed),
				   self))
			pthread_mutex_init(&cq->lock, NULL);
	}
	for (i = 0; i < URXE_MAX_QP; i++) {
		qp = atomic_load_explicit(&ctx->qp[i], memory_order_relaxed);
		if (!qp)
			continue;
		if (!pthread_equal(qp->batch.thread, self))
			urxe_lock_after_fork(&qp->lock);
		if (qp->rq.sh)
			urxe_lock_after_fork(&qp->rq.lock);
	}
	for (i = 0; i < URXE_MAX_SRQ; i++) {
		srq = atomic_load_explicit(&ctx->srq[i], memory_order_relaxed);
		if (srq)
			urxe_lock_after_fork(&srq->rq.lock);
	}
}

void urxe_after_fork(bool child)
{
	struct urxe_context *ctx;

	if (child)
		peer_after_fork();
	peer_unlock();
	bounce_unlock();
	for (ctx = contexts; ctx; ctx = ctx->next) {
		if (child) {
			service_after_fork(ctx);
			free_orphans(ctx);
			ctx->bouncing = NULL;
			/* what there is is the parent's */
			atomic_store_explicit(&ctx->has_private, false,
					      memory_order_relaxed);
		}
		pthread_mutex_unlock(&ctx->lock);
	}
	if (child) {
		mem_after_fork();
		event_after_fork();
	}
	pthread_mutex_unlock(&contexts_lock);
}

uint32_t urxe_async_fifo(struct urxe_context *ctx)
{
	uint32_t number;

	return fifo_number(ctx->ibv->async_fd, &number) ? 0 : number + 1;
}

/*
 * Copy path 3 reads and writes the memory of peers.  Where Yama asks for
 * consent, give it: to processes of the same user, as MPI libraries do.
 */
static void allow_peers(void)
{
	char scope = 0;
	int fd;

	fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, &scope, 1) == 1 && scope == '1')
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	close(fd);
}

static int attach(struct urxe_context *ctx, int cmd_fd)
{
	char dir[256];
	int ret;

	ret = arena_fabric_dir(cmd_fd, dir, sizeof(dir));
	if (!ret)
		ret = fabric_ref(dir, &ctx->fabric);
	if (ret)
		return ret;
	ret = dm_heap_map(ctx->fabric);
	if (ret)
		goto err_fabric;
	ret = arena_map(cmd_fd, &ctx->arena);
	if (ret)
		goto err_fabric;
	ret = peer_new_self(ctx->fabric, ctx->arena, &ctx->self);
	if (ret)
		goto err_unmap;
	ctx->cmd_fd = cmd_fd;
	ctx->slot = ctx->arena->slot;
	ctx->gen = ctx->arena->gen;
	atomic_store_explicit(&ctx->deaths,
			      atomic_load_explicit(&ctx->fabric->dev->deaths,
						   memory_order_relaxed),
			      memory_order_relaxed);
	pthread_mutex_init(&ctx->lock, NULL);
	if (ctx->arena->pid != urxe_pid || ctx->self->foreign_pids)
		bounce_expose(ctx); /* imported */
	return 0;

err_unmap:
	arena_unmap(ctx->arena);
err_fabric:
	fabric_unref(ctx->fabric);
	return ret;
}

void *urxe_alloc_context(struct ibv_device *device, int cmd_fd, void *priv)
{
	int ret, saved = errno;
	struct urxe_context *ctx;
	void *vctx;

	(void)priv;
	ctx = pabi.init_and_alloc_context(device, cmd_fd,
					  sizeof(*ctx) + pabi.context_size,
					  sizeof(*ctx), 0);
	if (!ctx)
		return NULL;
	vctx = ctx + 1;
	ret = -EPROTO;
	if (!pabi_context_ok(vctx, device))
		goto err_uninit;
	ctx->ibv = pabi_to_ibv(vctx);
	ret = attach(ctx, cmd_fd);
	if (ret)
		goto err_uninit;
	ctx->ibv->num_comp_vectors = URXE_NUM_COMP_VECTORS;
	pabi_set_ops(vctx, ops, sizeof(ops) / sizeof(*ops));
	allow_peers();
	pthread_mutex_lock(&contexts_lock);
	ctx->next = contexts;
	contexts = ctx;
	pthread_mutex_unlock(&contexts_lock);
	errno = saved;
	return vctx;

err_uninit:
	pabi.uninit_context(vctx);
	free(ctx);
	return urxe_fail(ret, "opening the device");
}

void *urxe_import_context(struct ibv_device *device, int cmd_fd)
{
	return urxe_alloc_context(device, cmd_fd, NULL);
}

void urxe_free_context(struct ibv_context *ibctx)
{
	struct urxe_context *ctx = to_uctx(ibctx), **p;

	service_stop(ctx);
	bounce_stop(ctx);
	pthread_mutex_lock(&contexts_lock);
	for (p = &contexts; *p; p = &(*p)->next) {
		if (*p == ctx) {
			*p = ctx->next;
			break;
		}
	}
	pthread_mutex_unlock(&contexts_lock);
	peer_put(ctx->self);
	fabric_unref(ctx->fabric);
	pthread_mutex_destroy(&ctx->lock);
	pabi.uninit_context(pabi_to_vctx(ibctx));
	free(ctx);
}
