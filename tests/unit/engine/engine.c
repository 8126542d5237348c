// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine.h"
#include "engine/context.h"
#include "engine/copy/bounce.h"
#include "engine/exec/sq_post.h"
#include "engine/qp/counters.h"
#include "engine/qp/flush.h"
#include "engine/mr/key.h"
#include "engine/core/log.h"
#include "engine/mem/peer.h"
#include "engine/core/process.h"
#include "engine/exec/requester.h"
#include "engine/qp/wqe.h"

struct urxe_context *engine_open(struct urxe_fabric *f)
{
	struct urxe_context *ctx = calloc(1, sizeof(*ctx));

	ck_assert_ptr_nonnull(ctx);
	process_identify();
	if (getenv("URXE_LOG"))
		urxe_log_to_stderr();
	ck_assert_int_eq(context_open(ctx, f, open_context(f)), 0);
	return ctx;
}

void engine_leave(struct urxe_context *ctx)
{
	int fd = ctx->cmd_fd;

	context_close(ctx);
	free(ctx);
	close(fd);
}

void engine_close(struct urxe_context *ctx)
{
	struct urxe_fabric *f = ctx->fabric;

	engine_leave(ctx);
	fabric_close(f);
}

struct urxe_cq *engine_cq(struct urxe_context *ctx, uint32_t cqe)
{
	return engine_cq_on(ctx, cqe, 0);
}

struct urxe_cq *engine_cq_on(struct urxe_context *ctx, uint32_t cqe,
			     uint32_t channel)
{
	const struct cq_params p = { .cqe = cqe, .channel = channel };
	struct urxe_cq *cq = aligned_alloc(
		URXE_LINE, sizeof(*cq) + URXE_LINE - sizeof(*cq) % URXE_LINE);

	ck_assert_ptr_nonnull(cq);
	memset(cq, 0, sizeof(*cq));
	ck_assert_int_eq(cq_open(cq, ctx, &p), 0);
	return cq;
}

void engine_cq_close(struct urxe_cq *cq)
{
	ck_assert_uint_eq(atomic_load(&cq->stalled), 0);
	ck_assert(poll_unlink(cq));
	cq_close(cq);
	free(cq);
}

struct urxe_srq *engine_srq(struct urxe_context *ctx)
{
	const struct srq_params p = { .max_wr = ENGINE_DEPTH,
				      .max_sge = 1,
				      .pd = ENGINE_PD };
	struct urxe_srq *srq = calloc(1, sizeof(*srq));

	ck_assert_ptr_nonnull(srq);
	ck_assert_int_eq(srq_open(srq, ctx, &p), 0);
	return srq;
}

void engine_srq_close(struct urxe_srq *srq)
{
	ck_assert(srq_unlink(srq));
	srq_close(srq);
	free(srq);
}

struct urxe_qp *engine_qp(enum ibv_qp_type type, struct urxe_cq *scq,
			  struct urxe_cq *rcq, struct urxe_srq *srq)
{
	const struct ibv_qp_cap cap = { .max_send_wr = ENGINE_DEPTH,
					.max_send_sge = 1,
					.max_inline_data = 64 };
	const struct qp_params p = { .type = type,
				     .scq = scq,
				     .rcq = rcq,
				     .srq = srq,
				     .max_recv_wr = ENGINE_DEPTH,
				     .max_recv_sge = 1,
				     .pd = ENGINE_PD };
	struct urxe_qp *qp = calloc(1, sizeof(*qp));

	ck_assert_ptr_nonnull(qp);
	qp->sq.ring = calloc(1, sq_plan(&qp->sq, &cap, false));
	qp->sq.ops = sq_ops[type & (SQ_TYPES - 1)];
	ck_assert_ptr_nonnull(qp->sq.ring);
	ck_assert_int_eq(qp_open(qp, scq->ctx, &p), 0);
	return qp;
}

void engine_qp_close(struct urxe_qp *qp)
{
	urxe_lock(&qp->lock);
	counters_flush(qp);
	qp_forget(qp, 0);
	urxe_unlock(&qp->lock);
	qp_unlink(qp);
	qp_close(qp, true);
	free(qp->sq.ring);
	free(qp);
}

/* Set what qp_apply() and qp_modify() of verbs/qp_state.c set. */
void engine_qp_connect(struct urxe_qp *qp, uint32_t dest)
{
	struct urxe_fabric *f = qp->ctx->fabric;
	struct urxe_qp_sh *sh = qp->sh;
	uint32_t slot, gen;

	urxe_lock(&qp->lock);
	qp->attr.dest_qp_num = dest;
	qp->attr.timeout = 14;
	qp->attr.retry_cnt = 7;
	qp->attr.rnr_retry = 7;
	qp->attr.max_rd_atomic = 8;
	qp->attr.qkey = ENGINE_QKEY;
	qp->mtu_shift = IBV_MTU_1024 + 7;
	qp->psn = 0;
	atomic_store_explicit(&sh->min_rnr_timer, 1, memory_order_relaxed);
	atomic_store_explicit(&sh->max_dest_rd_atomic, 8, memory_order_relaxed);
	atomic_store_explicit(&sh->path_mtu, IBV_MTU_1024,
			      memory_order_relaxed);
	atomic_store_explicit(&sh->qkey, ENGINE_QKEY, memory_order_relaxed);
	atomic_store_explicit(&sh->epsn, 0, memory_order_relaxed);
	atomic_store_explicit(&sh->access, ENGINE_ACCESS, memory_order_relaxed);
	if (!dest || !qpn_lookup(f->dev, dest, &slot, &gen) ||
	    !peer_is_own(f, slot, gen))
		bounce_expose(qp->ctx);
	atomic_store_explicit(&sh->conn, URXE_CONN(qp->qpn, dest, IBV_QPS_RTS),
			      memory_order_seq_cst);
	if (dest) {
		qp_guard_raise(qp, GUARD_SEND);
		conn_open(qp, &qp->conn, dest, qp->qpn);
		guard_lower(qp->guard);
	}
	urxe_unlock(&qp->lock);
}

void engine_qp_set(struct urxe_qp *qp, enum ibv_qp_state state)
{
	uint64_t dest = state == IBV_QPS_RESET ? 0 : qp->attr.dest_qp_num;

	urxe_lock(&qp->lock);
	if (state == IBV_QPS_RESET)
		qp_forget(qp, URXE_CONN(qp->qpn, dest, state));
	atomic_store_explicit(&qp->sh->conn, URXE_CONN(qp->qpn, dest, state),
			      memory_order_seq_cst);
	if (state == IBV_QPS_ERR)
		flush_qp(qp);
	else if (qp->sqd_notify)
		qp_drained(qp);
	if (state != IBV_QPS_RESET)
		requester_run(qp);
	urxe_unlock(&qp->lock);
}

uint32_t engine_key(struct urxe_context *ctx, void *addr, uint64_t len)
{
	const struct urxe_key desc = {
		.kind = URXE_MEM_PRIVATE,
		.va = (uintptr_t)addr,
		.iova = (uintptr_t)addr,
		.length = len,
		.access = ENGINE_ACCESS,
		.pd = ENGINE_PD,
		.pid = urxe_pid,
		.flags = ctx->self->my_flag,
	};
	struct urxe_key *k;
	uint32_t key;
	int err;

	k = key_alloc(ctx, URXE_OBJ_MR, &key, &err);
	ck_assert_ptr_nonnull(k);
	key_set(k, &desc);
	bounce_private(ctx);
	key_enable(ctx->arena, k, key);
	return key;
}

void engine_key_close(struct urxe_context *ctx, uint32_t key)
{
	ck_assert_int_eq(key_revoke(ctx, key, true), 0);
	key_free(ctx, URXE_OBJ_MR, key);
}

struct engine *engine_new_in(struct urxe_fabric *f)
{
	struct engine *e = calloc(1, sizeof(*e));

	ck_assert_ptr_nonnull(e);
	e->ctx = engine_open(f);
	e->cq = engine_cq(e->ctx, 4 * ENGINE_DEPTH);
	e->qp = engine_qp(IBV_QPT_RC, e->cq, e->cq, NULL);
	e->key = engine_key(e->ctx, e->mem, sizeof(e->mem));
	engine_qp_connect(e->qp, e->qp->qpn);
	return e;
}

struct engine *engine_new(void)
{
	return engine_new_in(new_fabric());
}

void engine_free(struct engine *e)
{
	engine_qp_close(e->qp);
	engine_cq_close(e->cq);
	engine_key_close(e->ctx, e->key);
	engine_close(e->ctx);
	free(e);
}

struct ibv_send_wr *wr_fill(struct wr *w, struct engine *e,
			    enum ibv_wr_opcode opcode, uint64_t wr_id,
			    unsigned int flags)
{
	const uint64_t remote = (uintptr_t)e->mem + WR_REMOTE;

	memset(w, 0, sizeof(*w));
	w->sge.addr = (uintptr_t)e->mem + WR_LOCAL;
	w->sge.length = 8;
	w->sge.lkey = e->key;
	w->wr.wr_id = wr_id;
	w->wr.opcode = opcode;
	w->wr.send_flags = flags;
	w->wr.sg_list = &w->sge;
	w->wr.num_sge = 1;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		w->wr.wr.atomic.remote_addr = remote;
		w->wr.wr.atomic.rkey = e->key;
		w->wr.wr.atomic.compare_add = 1;
		w->wr.wr.atomic.swap = 77;
	} else {
		w->wr.wr.rdma.remote_addr = remote;
		w->wr.wr.rdma.rkey = e->key;
	}
	return &w->wr;
}

int post(struct engine *e, enum ibv_wr_opcode opcode, uint64_t wr_id,
	 unsigned int flags)
{
	struct ibv_send_wr *bad;
	struct wr w;

	return sq_post(e->qp, wr_fill(&w, e, opcode, wr_id, flags), &bad);
}

int post_bare(struct urxe_qp *qp, uint8_t opcode, uint64_t wr_id,
	      unsigned int flags)
{
	struct urxe_wqe *w;
	int ret;

	urxe_lock(&qp->lock);
	ret = wqe_begin(qp, opcode, flags, wr_id, &w);
	if (!ret) {
		qp->sq.prod++;
		requester_run(qp);
	}
	urxe_unlock(&qp->lock);
	return ret;
}

int post_recv(struct urxe_qp *qp, void *addr, uint32_t len, uint32_t key,
	      uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)addr, len, key };
	struct ibv_recv_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	return rq_post_recv(qp, &wr, &bad);
}

struct ibv_wc next_wc(struct urxe_cq *cq)
{
	uint64_t end = clock_now() + 10000000000ull;
	struct ibv_wc wc;
	int n;

	while (!(n = poll_cq(cq, 1, &wc)))
		ck_assert_msg(clock_now() < end, "no completion");
	ck_assert_int_eq(n, 1);
	return wc;
}

/* ------------------------------------------------------- ordering */

enum class { SEND, BIND, WRITE, READ, ATOMIC, EXTENDED };

/*
 * IB 10.8.3.3; A19 for EXTENDED. ordering[first][second]: '#' if the second
 * WR must wait for the first, 'F' if only a fence makes it wait.
 */
static const char *const ordering[] = {
	/*	    Send Bind Write Read Atomic Extended */
	[SEND] = "######", [BIND] = "######",	[WRITE] = "######",
	[READ] = "FFF#F#", [ATOMIC] = "FFF###", [EXTENDED] = "######",
};

const uint8_t opcodes[OPCODES] = {
	IBV_WR_SEND,
	IBV_WR_SEND_WITH_IMM,
	IBV_WR_SEND_WITH_INV,
	IBV_WR_BIND_MW,
	IBV_WR_LOCAL_INV,
	IBV_WR_RDMA_WRITE,
	IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_CMP_AND_SWP,
	IBV_WR_ATOMIC_FETCH_AND_ADD,
	URXE_WR_FLUSH,
	URXE_WR_ATOMIC_WRITE,
};
static const uint8_t classes[OPCODES] = {
	SEND,  SEND, SEND,   BIND,   BIND,     WRITE,
	WRITE, READ, ATOMIC, ATOMIC, EXTENDED, EXTENDED,
};

bool must_wait(unsigned int first, unsigned int second, bool fence)
{
	return fence || ordering[classes[first]][classes[second]] == '#';
}

pid_t engine_other_process(struct engine *e)
{
	int p[2];
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(p), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		process_publish_liveness(e->ctx->fabric);
		context_join(e->ctx);
		if (write(p[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	ck_assert_int_eq(read(p[0], &c, 1), 1);
	close(p[0]);
	close(p[1]);
	e->ctx->arena->key[URXE_KEY_INDEX(e->key)].pid = pid;
	return pid;
}
