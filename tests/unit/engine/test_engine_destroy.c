// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Keys, windows, QPs and SRQs are destroyed while another thread posts
 * requests to them.  The destroyer writes to the memory at once, so that
 * ThreadSanitizer reports a requester for which it did not wait.
 */
#include <sched.h>
#include <string.h>

#include "engine/exec/bind.h"
#include "engine/exec/sq_post.h"
#include "engine/mr/key.h"
#include "engine/core/process.h"
#include "engine/run/quiesce.h"
#include "engine/exec/requester.h"
#include "engine/qp/wqe.h"
#include "../threads.h"

#define ROUNDS 40u
#define BYTES 256u

/*
 * QP a of one context posts to QP b of the other one, or to a QP that the
 * destroyer creates.
 */
struct duel {
	struct urxe_context *ctx;
	struct urxe_cq *acq, *bcq;
	struct urxe_qp *a, *b;
	uint32_t akey;
	/* held while b is reset, or while a WR of b is executed */
	pthread_mutex_t lock;
	_Atomic uint32_t rkey, qpn; /* what the requester uses; 0: nothing */
	/* the QPN that the requester does not use any more */
	_Atomic uint32_t left;
	_Atomic uint32_t hits, misses;
	_Atomic bool done;
	_Alignas(uint64_t) char mem[BYTES];
	_Alignas(uint64_t) char from[BYTES];
};

/* Check that no other thread writes to the memory. */
static void is_mine(struct duel *d, unsigned int round)
{
	memset(d->mem, (int)round, BYTES);
	sched_yield();
	sure(bytes_are(d->mem, 1, round) &&
	     !memcmp(d->mem, d->mem + 1, BYTES - 1));
}

static void duel_open(struct duel *d, struct urxe_fabric *f)
{
	struct urxe_context *other = engine_open(f);

	memset(d, 0, sizeof(*d));
	pthread_mutex_init(&d->lock, NULL);
	d->ctx = engine_open(f);
	d->acq = engine_cq(other, 2 * ENGINE_DEPTH);
	d->bcq = engine_cq(d->ctx, 4 * ENGINE_DEPTH);
	d->a = engine_qp(IBV_QPT_RC, d->acq, d->acq, NULL);
	d->b = engine_qp(IBV_QPT_RC, d->bcq, d->bcq, NULL);
	d->akey = engine_key(other, d->from, BYTES);
	engine_qp_connect(d->a, d->b->qpn);
	engine_qp_connect(d->b, d->a->qpn);
}

static void duel_close(struct duel *d)
{
	struct urxe_context *other = d->a->ctx;

	engine_qp_close(d->a);
	engine_qp_close(d->b);
	engine_key_close(other, d->akey);
	engine_cq_close(d->acq);
	engine_cq_close(d->bcq);
	engine_leave(other);
	engine_leave(d->ctx);
}

/*
 * Wait for a successful request of the requester; at random, do not wait.  If
 * the number of successful requests is limited, the last one may be over.
 * Then @before has to be a count from before the first one, or each further
 * attempt counts as a success.
 */
static void await_hit(struct duel *d, uint32_t before, uint64_t *state)
{
	uint32_t qpn = atomic_load(&d->qpn);

	if (rnd(state, 4))
		until(atomic_load(&d->hits) != before ||
			      (qpn && atomic_load(&d->left) == qpn),
		      sched_yield());
}

static enum ibv_wc_status wait_wc(struct urxe_cq *cq)
{
	struct ibv_wc wc;

	until(poll_cq(cq, 1, &wc) == 1, sched_yield());
	return wc.status;
}

static struct ibv_send_wr *fill(struct wr *w, struct duel *d,
				enum ibv_wr_opcode opcode, uint32_t len,
				uint32_t rkey)
{
	memset(w, 0, sizeof(*w));
	w->sge = (struct ibv_sge){ (uintptr_t)d->from, len, d->akey };
	w->wr.opcode = opcode;
	w->wr.send_flags = IBV_SEND_SIGNALED;
	w->wr.sg_list = &w->sge;
	w->wr.num_sge = 1;
	w->wr.wr.rdma.remote_addr = (uintptr_t)d->mem;
	w->wr.wr.rdma.rkey = rkey;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w->wr.wr.atomic.remote_addr = (uintptr_t)d->mem;
		w->wr.wr.atomic.rkey = rkey;
		w->wr.wr.atomic.compare_add = 1;
	}
	return &w->wr;
}

/* ------------------------------------------------------- keys and windows */

static void reconnect(struct duel *d)
{
	pthread_mutex_lock(&d->lock);
	engine_qp_set(d->a, IBV_QPS_RESET);
	engine_qp_set(d->b, IBV_QPS_RESET);
	engine_qp_connect(d->a, d->b->qpn);
	engine_qp_connect(d->b, d->a->qpn);
	pthread_mutex_unlock(&d->lock);
}

static void *accesses(void *arg)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD
	};
	struct duel *d = arg;
	enum ibv_wc_status status;
	uint64_t state = 1;
	struct ibv_send_wr *bad;
	uint32_t key, i;
	struct wr w;

	while (!atomic_load(&d->done)) {
		key = atomic_load(&d->rkey);
		if (!key) {
			sched_yield();
			continue;
		}
		i = rnd(&state, 3);
		fill(&w, d, opcodes[i], i == 2 ? 8 : BYTES, key);
		sure(!sq_post(d->a, &w.wr, &bad));
		status = wait_wc(d->acq);
		if (status == IBV_WC_SUCCESS) {
			atomic_fetch_add(&d->hits, 1);
			continue;
		}
		sure(status == IBV_WC_REM_ACCESS_ERR);
		atomic_fetch_add(&d->misses, 1);
		reconnect(d);
	}
	return NULL;
}

/* Destroy keys. d->rkey is not cleared, so that requests are refused. */
static void revokes_keys(struct duel *d)
{
	uint64_t state = 2;
	unsigned int i;
	uint32_t key;

	for (i = 0; i < ROUNDS; i++) {
		key = engine_key(d->ctx, d->mem, BYTES);
		atomic_store(&d->rkey, key);
		await_hit(d, atomic_load(&d->hits), &state);
		engine_key_close(d->ctx, key);
		is_mine(d, i);
	}
}

struct window {
	struct ibv_mw mw;
	struct ibv_mr mr;
	struct urxe_qp *qp; /* binds the window */
	struct urxe_key *k;
};

static void window_open(struct duel *d, struct window *w, enum ibv_mw_type type)
{
	const struct urxe_key desc = {
		.flags = URXE_MR_IS_MW |
			 (type == IBV_MW_TYPE_2 ? URXE_MR_TYPE_2 : 0),
		.pd = ENGINE_PD,
		.pid = urxe_pid,
	};
	int err;

	memset(w, 0, sizeof(*w));
	w->mw.type = type;
	w->k = key_alloc(d->ctx, URXE_OBJ_MW, &w->mw.rkey, &err);
	ck_assert_ptr_nonnull(w->k);
	key_set(w->k, &desc);
	w->k->qpn = 0;
	w->mr.lkey = engine_key(d->ctx, d->mem, BYTES);
	d->ctx->arena->key[URXE_KEY_INDEX(w->mr.lkey)].access |=
		IBV_ACCESS_MW_BIND;
	/*
	 * a type 2 window is for the QP that binds it, type 1 for all QPs of
	 * the PD
	 */
	w->qp = d->b;
	if (type == IBV_MW_TYPE_2)
		return;
	w->qp = engine_qp(IBV_QPT_RC, d->bcq, d->bcq, NULL);
	engine_qp_connect(w->qp, w->qp->qpn);
}

static void window_close(struct duel *d, struct window *w)
{
	sure(!w->k->parent);
	w->k->flags = 0;
	key_free(d->ctx, URXE_OBJ_MW, w->mw.rkey);
	engine_key_close(d->ctx, w->mr.lkey);
	if (w->mw.type == IBV_MW_TYPE_1)
		engine_qp_close(w->qp);
}

/*
 * Bind the window to @length bytes; 0 unbinds or invalidates it.  Return 0 or
 * an errno value.
 */
static int window_post(struct window *w, struct duel *d, uint32_t length)
{
	const struct ibv_mw_bind_info info = {
		.mr = &w->mr,
		.addr = (uintptr_t)d->mem,
		.length = length,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};
	const bool inv = !length && w->mw.type == IBV_MW_TYPE_2;
	struct urxe_wqe *wqe;
	int ret;

	urxe_lock(&w->qp->lock);
	ret = wqe_begin(w->qp, inv ? IBV_WR_LOCAL_INV : IBV_WR_BIND_MW,
			IBV_SEND_SIGNALED, 1, &wqe);
	if (!ret) {
		if (inv)
			wqe->imm = w->mw.rkey;
		else
			wqe_bind_fill(wqe, &w->mw, ibv_inc_rkey(w->mw.rkey),
				      &info);
		w->qp->sq.prod++;
		requester_run(w->qp);
	}
	urxe_unlock(&w->qp->lock);
	return ret;
}

/* Repeat until it succeeds: a refused request may have broken the QP. */
static void window_move(struct window *w, struct duel *d, uint32_t length)
{
	enum ibv_wc_status status;

	do {
		pthread_mutex_lock(&d->lock);
		sure(!window_post(w, d, length));
		status = wait_wc(d->bcq);
		pthread_mutex_unlock(&d->lock);
		sure(!status || status == IBV_WC_WR_FLUSH_ERR);
		sched_yield();
	} while (status);
}

static void moves_windows(struct duel *d, enum ibv_mw_type type)
{
	uint64_t state = 3;
	struct window w;
	unsigned int i;

	window_open(d, &w, type);
	for (i = 0; i < ROUNDS; i++) {
		window_move(&w, d, BYTES);
		atomic_store(&d->rkey, w.mw.rkey);
		await_hit(d, atomic_load(&d->hits), &state);
		window_move(&w, d, 0);
		is_mine(d, i);
	}
	atomic_store(&d->rkey, 0);
	window_close(d, &w);
}

/* Run two requesters and two destroyers, in the same fabric. */
static void fight(void *(*posts)(void *), void *(*takes)(void *))
{
	static struct duel duel[2];
	struct urxe_fabric *f = new_fabric();
	pthread_t poster[2], destroyer[2];
	unsigned int i;

	for (i = 0; i < 2; i++)
		duel_open(&duel[i], f);
	for (i = 0; i < 2; i++) {
		poster[i] = thread_of(posts, &duel[i]);
		destroyer[i] = thread_of(takes, &duel[i]);
	}
	for (i = 0; i < 2; i++)
		pthread_join(destroyer[i], NULL);
	for (i = 0; i < 2; i++) {
		atomic_store(&duel[i].done, true);
		pthread_join(poster[i], NULL);
		sure(duel[i].hits && duel[i].misses);
		duel_close(&duel[i]);
	}
	fabric_close(f);
}

static void *take_keys(void *arg)
{
	revokes_keys(arg);
	return NULL;
}

static void *take_windows_1(void *arg)
{
	moves_windows(arg, IBV_MW_TYPE_1);
	return NULL;
}

static void *take_windows_2(void *arg)
{
	moves_windows(arg, IBV_MW_TYPE_2);
	return NULL;
}

START_TEST(dereg_mr_in_use)
{
	fight(accesses, take_keys);
}
END_TEST

START_TEST(unbind_mw_type_1_in_use)
{
	fight(accesses, take_windows_1);
}
END_TEST

START_TEST(invalidate_mw_type_2_in_use)
{
	fight(accesses, take_windows_2);
}
END_TEST

/* ------------------------------------------------------- QPs and SRQs */

/*
 * Connect to that QP, with timeouts so short that its destruction is soon
 * detected.
 */
static void turn_to(struct duel *d, uint32_t qpn)
{
	engine_qp_set(d->a, IBV_QPS_RESET);
	engine_qp_connect(d->a, qpn);
	urxe_lock(&d->a->lock);
	d->a->attr.timeout = 8; /* 1 ms */
	d->a->attr.retry_cnt = 1;
	d->a->attr.rnr_retry = 1;
	urxe_unlock(&d->a->lock);
}

static void *sends(void *arg)
{
	struct duel *d = arg;
	uint32_t qpn, last = 0;
	enum ibv_wc_status status;
	uint64_t state = 4;
	unsigned int i;
	struct ibv_send_wr *bad;
	struct wr w;

	while (!atomic_load(&d->done)) {
		qpn = atomic_load(&d->qpn);
		if (qpn == last) {
			sched_yield();
			continue;
		}
		turn_to(d, qpn);
		do { /* short messages are stored in the completion */
			fill(&w, d, IBV_WR_SEND, rnd(&state, 2) ? 8 : BYTES, 0);
			sure(!sq_post(d->a, &w.wr, &bad));
			status = wait_wc(d->acq);
			if (!status)
				atomic_fetch_add(&d->hits, 1);
		} while (!status);
		sure(status == IBV_WC_RETRY_EXC_ERR ||
		     status == IBV_WC_RNR_RETRY_EXC_ERR);
		atomic_fetch_add(&d->misses, 1);
		/* the slot of the QP number may be reused at any time */
		for (i = 0; i < 50 && atomic_load(&d->qpn) == qpn; i++)
			turn_to(d, qpn);
		last = qpn;
		atomic_store(&d->left, qpn);
	}
	return NULL;
}

static void give_receive(struct duel *d, struct urxe_qp *qp, uint32_t key)
{
	struct ibv_sge sge = { (uintptr_t)d->mem, BYTES, key };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	sure(!(qp->srq ? srq_post_recv(qp->srq, &wr, &bad) :
			 rq_post_recv(qp, &wr, &bad)));
}

/* Destroy QPs and SRQs.  Some of their receives are polled before that. */
static void *take_qps(void *arg)
{
	struct duel *d = arg;
	uint32_t key = engine_key(d->ctx, d->mem, BYTES);
	struct urxe_srq *srq;
	struct urxe_qp *qp;
	uint64_t state = 5;
	struct ibv_wc wc;
	uint32_t before;
	unsigned int i, k;

	for (i = 0; i < ROUNDS; i++) {
		srq = i & 1 ? engine_srq(d->ctx) : NULL;
		qp = engine_qp(IBV_QPT_RC, d->bcq, d->bcq, srq);
		for (k = 0; k < ENGINE_DEPTH && srq; k++)
			give_receive(d, qp, key);
		engine_qp_connect(qp, d->a->qpn);
		for (k = 0; k < ENGINE_DEPTH && !srq; k++)
			give_receive(d, qp, key);
		before = atomic_load(&d->hits);
		atomic_store(&d->qpn, qp->qpn);
		await_hit(d, before, &state);
		if (rnd(&state, 2) && poll_cq(d->bcq, 1, &wc) == 1)
			sure(!wc.status && wc.qp_num == qp->qpn);
		engine_qp_close(qp);
		if (srq)
			engine_srq_close(srq);
		is_mine(d, i);
		sure(!poll_cq(d->bcq, 1, &wc));
	}
	engine_key_close(d->ctx, key);
	return NULL;
}

START_TEST(destroy_qp_in_use)
{
	fight(sends, take_qps);
}
END_TEST

/* ------------------------------------------------------- states */

/*
 * Modify the QP to ERR, SQD and RESET.  Each WR posted meanwhile completes,
 * is flushed, or is dropped.
 */
static void *breaks(void *arg)
{
	struct duel *d = arg;
	uint64_t state = 6;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		await_hit(d, atomic_load(&d->hits), &state);
		engine_qp_set(d->b, i & 1 ? IBV_QPS_ERR : IBV_QPS_SQD);
		if (i & 1)
			await_hit(d, atomic_load(&d->hits), &state);
		engine_qp_set(d->b, IBV_QPS_RESET);
		engine_qp_connect(d->b, d->a->qpn);
	}
	return NULL;
}

/* QP b posts meanwhile, to a QP that has no receives. */
static void *posts_anyway(void *arg)
{
	struct duel *d = arg;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	uint64_t state = 7;
	struct wr w;
	int ret;

	while (!atomic_load(&d->done)) {
		fill(&w, d, IBV_WR_SEND, 8, 0);
		w.sge.lkey = 0;
		w.wr.send_flags |= IBV_SEND_INLINE;
		ret = sq_post(d->b, &w.wr, &bad);
		sure(!ret || ret == EINVAL || ret == ENOMEM);
		if (!ret || ret == ENOMEM)
			atomic_fetch_add(&d->hits, 1);
		while (poll_cq(d->bcq, 1, &wc) == 1) {
			sure(wc.status == IBV_WC_WR_FLUSH_ERR);
			atomic_fetch_add(&d->misses, 1);
		}
		if (rnd(&state, 2))
			sched_yield();
	}
	return NULL;
}

START_TEST(modify_qp_in_use)
{
	fight(posts_anyway, breaks);
}
END_TEST

/* A guard of an idle group is not read.  A guard in use is always read. */
START_TEST(guard_groups)
{
	struct urxe_fabric *f = new_fabric();
	struct duel d;
	_Atomic uint64_t *group;
	struct guard_object mine;
	int i;

	duel_open(&d, f);
	group = d.a->guard_group;
	mine = (struct guard_object){ GUARD_OF_CQ, d.a->ctx->slot, 0, 0 };
	/* a was in use while it was connected, and is idle since */
	for (i = 0; i < 3; i++)
		quiesce_cq(f, d.a->ctx->arena, 0);
	ck_assert(!guard_group_is_busy(group));
	qp_guard_raise(d.a, GUARD_NOTHING);
	ck_assert(guard_group_is_busy(group));
	/* a uses no object of the other context */
	for (i = 0; i < 3; i++)
		quiesce_cq(f, d.ctx->arena, 0);
	ck_assert(guard_group_is_busy(group));
	ck_assert(!quiesce_try(f, d.a->ctx->arena, &mine));
	guard_lower(d.a->guard);
	ck_assert(quiesce_try(f, d.a->ctx->arena, &mine));
	for (i = 0; i < 3; i++)
		quiesce_cq(f, d.ctx->arena, 0);
	ck_assert(!guard_group_is_busy(group));
	/* the group of a requester that keeps working is not made idle */
	for (i = 0; i < 10; i++) {
		qp_guard_raise(d.a, GUARD_NOTHING);
		guard_lower(d.a->guard);
		quiesce_cq(f, d.ctx->arena, 0);
		ck_assert(guard_group_is_busy(group));
	}
	duel_close(&d);
	fabric_close(f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine, destruction of objects in use");

	add(s, guard_groups);
	threads_add(s, dereg_mr_in_use);
	threads_add(s, unbind_mw_type_1_in_use);
	threads_add(s, invalidate_mw_type_2_in_use);
	threads_add(s, destroy_qp_in_use);
	threads_add(s, modify_qp_in_use);
	return run_suite(s);
}
