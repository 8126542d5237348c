// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Opening and closing a device (ibv_open_device, ibv_import_device,
 * ibv_close_device), and the pthread_atfork() handlers.
 *
 * All contexts of the process are in the list `contexts`, under
 * contexts_lock.  Contexts of one fabric share one mapping of it (struct
 * fabric_node).
 *
 * Lock order: adopt_begin(), contexts_lock, ctx->lock, bounce_lock(),
 * peer_lock().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "context.h"
#include "engine/adopt/adopt.h"
#include "engine/context.h"
#include "engine/copy/bounce.h"
#include "engine/exec/direct.h"
#include "engine/core/log.h"
#include "engine/mem/mem.h"
#include "engine/mem/peer.h"
#include "engine/core/process.h"
#include "engine/exec/retry.h"
#include "engine/run/service.h"
#include "verbs/context.h"
#include "verbs/event.h"
#include "verbs/mr/memlock.h"
#include "verbs/profile.h"
#include "verbs/verbs.h"

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urxe_vcontext *contexts;

/*
 * Record that a forked child may poll the CQs of @ctx as well; ctx->lock
 * held.
 */
static void context_expect_pollers(struct urxe_context *ctx)
{
	struct urxe_cq *cq;

	for (cq = ctx->cqs; cq; cq = cq->next)
		store_relaxed(&cq->forked, true);
}

/*
 * fork() copies private memory while other threads may be changing it.
 * Object lists change under ctx->lock, so this handler takes these locks and
 * the child gets consistent lists.  The state that peers see is in shared
 * files, which fork() does not copy.
 *
 * The locks of QPs, CQs and SRQs are not taken: the forking thread may hold
 * one itself, between ibv_wr_start and ibv_wr_complete.  The child
 * reinitialises those that other threads held, because these threads do not
 * exist there.  These locks protect private data, queue indices.  Each update
 * of an index leaves a state from which the next caller can continue.
 */
void context_before_fork(void)
{
	struct urxe_vcontext *v;

	adopt_begin(); /* the outermost lock */
	pthread_mutex_lock(&contexts_lock);
	for (v = contexts; v; v = v->next) {
		pthread_mutex_lock(&v->ctx.lock);
		context_expect_pollers(&v->ctx);
	}
	bounce_lock();
	peer_lock();
	/* last: data under the locks above may be in adopted pages */
	adopt_before_fork();
}

/*
 * Reinitialise, in the child, the locks that other threads of the parent may
 * have held.  The forking thread keeps its own poll and post batches.
 */
static void context_free_cq_lock(struct urxe_cq *cq)
{
	gate_init(&cq->gate);
	cq->service_sweeps = false;
	if (cq_in_batch(cq))
		return;
	mutex_init(&cq->lock);
	store_relaxed(&cq->batch_thread, (pthread_t)0);
}

static void context_free_qp_locks(struct urxe_qp *qp)
{
	bool in_batch = qp_in_batch(qp);

	qp->pins = 0;
	if (!in_batch)
		gate_init(&qp->lock.gate);
	direct_after_fork(qp);
	stall_disown(qp, in_batch ? qp->batch_first : qp->sq.prod);
	if (qp->rq.sh)
		gate_init(&qp->rq.lock.gate);
}

static void context_free_locks(struct urxe_context *ctx)
{
	struct urxe_srq *srq;
	struct urxe_cq *cq;
	struct urxe_qp *qp;
	uint32_t i;

	pthread_cond_init(&ctx->unpinned, NULL);
	for (cq = ctx->cqs; cq; cq = cq->next)
		context_free_cq_lock(cq);
	for (i = 0; i < URXE_MAX_QP; i++) {
		qp = load_relaxed(&ctx->qp[i]);
		if (qp)
			context_free_qp_locks(qp);
	}
	for (i = 0; i < URXE_MAX_SRQ; i++) {
		srq = load_relaxed(&ctx->srq[i]);
		if (srq)
			gate_init(&srq->rq.lock.gate);
	}
}

static void context_unlock(void)
{
	struct urxe_vcontext *v;

	peer_unlock();
	bounce_unlock();
	for (v = contexts; v; v = v->next)
		pthread_mutex_unlock(&v->ctx.lock);
	pthread_mutex_unlock(&contexts_lock);
}

void context_after_fork_parent(void)
{
	context_unlock();
	adopt_after_fork_parent();
}

void context_after_fork_child(void)
{
	struct urxe_vcontext *v;

	/* first: the functions below use the heap, which may be adopted */
	adopt_after_fork_child();
	process_identify();
	memlock_after_fork();
	tally_after_fork();
	peer_after_fork();
	for (v = contexts; v; v = v->next) {
		service_after_fork(&v->ctx);
		interposers_after_fork(&v->ctx);
		/*
		 * Events are no longer kept for delayed delivery: the child
		 * has no service thread to write them, and the parent may
		 * exit.
		 */
		store_relaxed(&v->ctx.arena->keeps_async, 0);
		context_free_locks(&v->ctx);
		v->ctx.bouncing = NULL;
		/* MRs registered so far belong to the parent */
		store_relaxed(&v->ctx.has_private, false);
	}
	mem_after_fork();
	event_after_fork();
	context_unlock();
}

/* ---------------------------------------------------------- opening */

/* The mapping of one fabric, shared by all contexts of this process. */
struct fabric_node {
	struct urxe_fabric *fabric;
	struct fabric_node *next;
	unsigned int refs;
};

static struct fabric_node *fabrics; /* under contexts_lock */

/* Return the fabric in @dir in *@out, with a reference, or -errno. */
static int fabric_get(const char *dir, struct urxe_fabric **out)
{
	struct fabric_node *n;
	int ret = 0;

	pthread_mutex_lock(&contexts_lock);
	for (n = fabrics; n; n = n->next)
		if (!strcmp(n->fabric->dir, dir))
			break;
	if (!n) {
		n = calloc(1, sizeof(*n));
		ret = n ? fabric_open(dir, false, &n->fabric) : -ENOMEM;
		if (ret) {
			free(n);
			goto out;
		}
		n->next = fabrics;
		fabrics = n;
	}
	n->refs++;
	*out = n->fabric;
out:
	pthread_mutex_unlock(&contexts_lock);
	return ret;
}

static void fabric_put(struct urxe_fabric *f)
{
	struct fabric_node *n, **p;

	pthread_mutex_lock(&contexts_lock);
	for (p = &fabrics; (n = *p); p = &n->next) {
		if (n->fabric != f || --n->refs)
			continue;
		*p = n->next;
		fabric_close(f);
		free(n);
		break;
	}
	pthread_mutex_unlock(&contexts_lock);
}

/*
 * Allow peers to use process_vm_readv() and process_vm_writev() on this
 * process (copy path 3).  If Yama's ptrace_scope is 1, set
 * PR_SET_PTRACER_ANY, as MPI libraries do.  The usual ptrace checks still
 * limit this to processes of the same user.
 */
static void context_allow_peers(void)
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

/* Attach @ctx to the fabric and the arena that @cmd_fd names.  0 or -errno */
static int context_attach(struct urxe_context *ctx, int cmd_fd)
{
	struct urxe_fabric *f;
	char dir[256];
	int ret;

	fabric_why_clear();
	ret = arena_fabric_dir(cmd_fd, dir, sizeof(dir));
	if (!ret)
		ret = fabric_get(dir, &f);
	if (ret)
		return ret;
	ret = context_open(ctx, f, cmd_fd);
	if (ret)
		fabric_put(f);
	return ret;
}

/*
 * Set errno to -@err and return NULL.  Also print the reason on stderr, once
 * in a process, even without URXE_LOG: most programs report only that the
 * device cannot be opened.
 */
static void *open_fail(const struct ibv_device *device, int err)
{
	urxe_complain("cannot open %s: %s", device->name, fabric_reason(-err));
	return urxe_fail(err, "opening the device");
}

void *urxe_alloc_context(struct ibv_device *device, int cmd_fd, void *priv)
{
	int ret, saved = errno;
	struct urxe_vcontext *v;
	struct urxe_fabric *f;
	const struct pabi_ops *ops = interposers_ops();
	struct pabi_ops own;
	void *core;

	(void)priv;
	if (!ops) {
		ret = errno;
		close(cmd_fd); /* the callee owns cmd_fd, also on failure */
		errno = ret;
		return NULL;
	}
	v = pabi.init_and_alloc_context(device, cmd_fd,
					sizeof(*v) + pabi.context_size,
					sizeof(*v), 0);
	if (!v) {
		fabric_why_clear();
		return open_fail(device, -errno);
	}
	core = v + 1;
	ret = -EPROTO;
	if (!pabi_context_ok(core, device))
		goto err_uninit;
	v->ibv = pabi_to_ibv(core);
	ret = context_attach(&v->ctx, cmd_fd);
	if (ret)
		goto err_uninit;
	ret = interposers_open(&v->ctx);
	if (ret)
		goto err_close;
	v->ibv->num_comp_vectors = (int)profile_limit(&v->ctx, comp_vectors);
	own = *ops;
	profile_ops(&v->ctx, &own);
	pabi_set_ops(core, &own);
	context_allow_peers();
	pthread_mutex_lock(&contexts_lock);
	v->next = contexts;
	contexts = v;
	pthread_mutex_unlock(&contexts_lock);
	interposers_opened(&v->ctx);
	tally_begin();
	errno = saved;
	return core;

err_close:
	f = v->ctx.fabric;
	context_close(&v->ctx);
	fabric_put(f);
err_uninit:
	pabi.uninit_context(core);
	free(v);
	return ret > 0 ? urxe_fail(-ret, "opening the device") :
			 open_fail(device, ret);
}

void *urxe_import_context(struct ibv_device *device, int cmd_fd)
{
	return urxe_alloc_context(device, cmd_fd, NULL);
}

void urxe_free_context(struct ibv_context *ibctx)
{
	struct urxe_vcontext *v = to_vctx(ibctx), **p;
	struct urxe_fabric *f = v->ctx.fabric;
	uint32_t slot = v->ctx.slot, gen = v->ctx.gen;

	/* it may wait; the child of a fork(2) meanwhile finds the context */
	interposers_closing(&v->ctx);
	pthread_mutex_lock(&contexts_lock);
	for (p = &contexts; *p != v; p = &(*p)->next)
		;
	*p = v->next;
	pthread_mutex_unlock(&contexts_lock);
	context_close(&v->ctx);
	pabi.uninit_context(pabi_to_vctx(ibctx)); /* closes its descriptor */
	/* no effect while another process still holds this context */
	fabric_reap_one(f, slot, gen);
	fabric_put(f);
	free(v);
}
