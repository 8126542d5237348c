// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The engine without verbs: fabric, context, queues and keys.  Of this
 * project the test links only the fabric and the engine.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine.h"
#include "engine/exec/sq_post.h"

static uint64_t word_at(struct engine *e, uint32_t offset)
{
	uint64_t v;

	memcpy(&v, e->mem + offset, 8);
	return v;
}

static void put_word(struct engine *e, uint32_t offset, uint64_t v)
{
	memcpy(e->mem + offset, &v, 8);
}

START_TEST(write_read)
{
	struct engine *e = engine_new();
	struct ibv_wc wc;

	put_word(e, WR_LOCAL, 42);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED), 0);
	wc = next_wc(e->cq);
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.opcode, IBV_WC_RDMA_WRITE);
	ck_assert_uint_eq(wc.qp_num, e->qp->qpn);
	ck_assert_uint_eq(word_at(e, WR_REMOTE), 42);
	put_word(e, WR_REMOTE, 43);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_READ, 2, IBV_SEND_SIGNALED), 0);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word_at(e, WR_LOCAL), 43);
	expect_none(e->cq);
	engine_free(e);
}
END_TEST

START_TEST(atomics)
{
	struct engine *e = engine_new();

	put_word(e, WR_REMOTE, 0);
	ck_assert_int_eq(
		post(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, IBV_SEND_SIGNALED), 0);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word_at(e, WR_LOCAL), 0);
	ck_assert_uint_eq(word_at(e, WR_REMOTE), 1);
	/* wr_fill() compares with 1 */
	ck_assert_int_eq(
		post(e, IBV_WR_ATOMIC_CMP_AND_SWP, 2, IBV_SEND_SIGNALED), 0);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word_at(e, WR_LOCAL), 1);
	ck_assert_uint_eq(word_at(e, WR_REMOTE), 77);
	ck_assert_int_eq(post(e, URXE_WR_ATOMIC_WRITE, 3, IBV_SEND_SIGNALED),
			 0);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word_at(e, WR_REMOTE), 1);
	engine_free(e);
}
END_TEST

/* A message that is stored in the completion, and one that is copied. */
START_TEST(send_recv)
{
	static const uint32_t length[] = { 8, 2000 };
	struct engine *e = engine_new();
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	struct wr w;
	int i;

	for (i = 0; i < 2; i++) {
		memset(e->mem, 'a' + i, length[i]);
		ck_assert_int_eq(
			post_recv(e->qp, e->mem + WR_REMOTE, 2000, e->key, 10),
			0);
		wr_fill(&w, e, IBV_WR_SEND_WITH_IMM, 11, IBV_SEND_SIGNALED);
		w.sge.length = length[i];
		w.wr.imm_data = 99;
		ck_assert_int_eq(sq_post(e->qp, &w.wr, &bad), 0);
		expect_wc(e->cq, 11, IBV_WC_SUCCESS);
		wc = next_wc(e->cq);
		ck_assert_uint_eq(wc.wr_id, 10);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
		ck_assert_uint_eq(wc.byte_len, length[i]);
		ck_assert_uint_eq(wc.imm_data, 99);
		ck_assert(!memcmp(e->mem, e->mem + WR_REMOTE, length[i]));
	}
	engine_free(e);
}
END_TEST

START_TEST(inline_data)
{
	struct engine *e = engine_new();
	struct ibv_send_wr *bad;
	char text[] = "inline";
	struct wr w;

	wr_fill(&w, e, IBV_WR_SEND, 2, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	w.sge.addr = (uintptr_t)text;
	w.sge.length = sizeof(text);
	w.sge.lkey = 0;
	/* there is no receive: the message is sent after text has changed */
	ck_assert_int_eq(sq_post(e->qp, &w.wr, &bad), 0);
	memset(text, 'x', sizeof(text));
	ck_assert_int_eq(post_recv(e->qp, e->mem, 100, e->key, 1), 0);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_str_eq(e->mem, "inline");
	engine_free(e);
}
END_TEST

START_TEST(datagram)
{
	struct engine *e = engine_new();
	struct urxe_qp *ud = engine_qp(IBV_QPT_UD, e->cq, e->cq, NULL);
	struct urxe_ah ah = { .ctx = e->ctx, .pd = ud->sh->pd };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	struct wr w;

	engine_qp_connect(ud, 0);
	put_word(e, WR_LOCAL, 5);
	ck_assert_int_eq(post_recv(ud, e->mem + WR_REMOTE, 100, e->key, 1), 0);
	wr_fill(&w, e, IBV_WR_SEND, 2, IBV_SEND_SIGNALED);
	w.wr.wr.ud.ah = &ah.ah;
	w.wr.wr.ud.remote_qpn = ud->qpn;
	w.wr.wr.ud.remote_qkey = ENGINE_QKEY;
	ck_assert_int_eq(sq_post(ud, &w.wr, &bad), 0);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	wc = next_wc(e->cq);
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_uint_eq(wc.byte_len, 48);
	ck_assert_uint_eq(wc.src_qp, ud->qpn);
	ck_assert_uint_eq(wc.wc_flags & IBV_WC_GRH, IBV_WC_GRH);
	ck_assert_uint_eq(word_at(e, WR_REMOTE + 40), 5);
	/* no QP accepts this Q_Key: the datagram is dropped */
	w.wr.wr.ud.remote_qkey = ENGINE_QKEY + 1;
	ck_assert_int_eq(sq_post(ud, &w.wr, &bad), 0);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_none(e->cq);
	engine_qp_close(ud);
	engine_free(e);
}
END_TEST

START_TEST(shared_receives)
{
	struct engine *e = engine_new();
	struct urxe_srq *srq = engine_srq(e->ctx);
	struct urxe_qp *qp = engine_qp(IBV_QPT_RC, e->cq, e->cq, srq);
	struct ibv_sge sge = { (uintptr_t)e->mem + WR_REMOTE, 100, e->key };
	struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad_recv;
	struct ibv_send_wr *bad;
	struct wr w;
	int i;

	engine_qp_connect(qp, qp->qpn);
	for (i = 0; i < 3; i++) {
		put_word(e, WR_LOCAL, 6 + i);
		wr_fill(&w, e, IBV_WR_SEND, 2, IBV_SEND_SIGNALED);
		if (i < 2) {
			ck_assert_int_eq(srq_post_recv(srq, &recv, &bad_recv),
					 0);
			ck_assert_int_eq(sq_post(qp, &w.wr, &bad), 0);
		} else { /* parked */
			ck_assert_int_eq(sq_post(qp, &w.wr, &bad), 0);
			expect_none(e->cq);
			ck_assert_int_eq(srq_post_recv(srq, &recv, &bad_recv),
					 0);
		}
		expect_wc(e->cq, 2, IBV_WC_SUCCESS);
		expect_wc(e->cq, 1, IBV_WC_SUCCESS);
		ck_assert_uint_eq(word_at(e, WR_REMOTE), 6 + i);
	}
	engine_qp_close(qp);
	engine_srq_close(srq);
	engine_free(e);
}
END_TEST

/*
 * A SEND that is parked for lack of a receive is completed by the service
 * thread, which the receive wakes, without any polling.
 */
START_TEST(rnr)
{
	struct engine *e = engine_new();

	put_word(e, WR_LOCAL, 7);
	ck_assert_int_eq(post(e, IBV_WR_SEND, 2, IBV_SEND_SIGNALED), 0);
	expect_none(e->cq);
	ck_assert_uint_eq(atomic_load(&e->cq->stalled), 1);
	ck_assert_int_eq(post_recv(e->qp, e->mem + WR_REMOTE, 100, e->key, 1),
			 0);
	wait_until(!atomic_load(&e->cq->stalled));
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word_at(e, WR_REMOTE), 7);
	engine_free(e);
}
END_TEST

START_TEST(flush)
{
	struct engine *e = engine_new();
	struct ibv_send_wr *bad;
	struct wr w[3];
	int i;

	ck_assert_int_eq(post_recv(e->qp, e->mem, 8, e->key, 10), 0);
	for (i = 0; i < 3; i++) {
		wr_fill(&w[i], e, IBV_WR_RDMA_WRITE, i, 0);
		w[i].wr.next = i < 2 ? &w[i + 1].wr : NULL;
	}
	w[1].wr.wr.rdma.rkey ^= 1; /* wrong tag */
	ck_assert_int_eq(sq_post(e->qp, &w[0].wr, &bad), 0);
	expect_wc(e->cq, 1, IBV_WC_REM_ACCESS_ERR);
	expect_wc(e->cq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(e->cq, 10, IBV_WC_WR_FLUSH_ERR);
	expect_none(e->cq);
	ck_assert_int_eq(qp_state(e->qp), IBV_QPS_ERR);
	/* WRs posted later are flushed, too */
	ck_assert_int_eq(post(e, IBV_WR_SEND, 3, 0), 0);
	expect_wc(e->cq, 3, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(post_recv(e->qp, e->mem, 8, e->key, 11), 0);
	expect_wc(e->cq, 11, IBV_WC_WR_FLUSH_ERR);

	engine_qp_set(e->qp, IBV_QPS_RESET);
	ck_assert_int_eq(post(e, IBV_WR_SEND, 4, 0), EINVAL);
	engine_qp_connect(e->qp, e->qp->qpn);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 5, IBV_SEND_SIGNALED), 0);
	expect_wc(e->cq, 5, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

/* ------------------------------------------------------- two processes */

/* What two processes exchange: addresses and progress. */
struct end {
	uint32_t qpn, key;
	uint64_t addr;
	_Atomic int step;
};
struct ends {
	struct end requester, responder;
	char dir[256];
};

static struct engine *meet(const char *dir, struct end *mine, struct end *other)
{
	struct urxe_fabric *f;
	struct engine *e;

	ck_assert_int_eq(fabric_open(dir, true, &f), 0);
	e = engine_new_in(f);
	mine->qpn = e->qp->qpn;
	mine->key = e->key;
	mine->addr = (uintptr_t)e->mem;
	atomic_store(&mine->step, 1);
	wait_until(atomic_load(&other->step) >= 1);
	engine_qp_set(e->qp, IBV_QPS_RESET);
	engine_qp_connect(e->qp, other->qpn);
	return e;
}

static int responder(void *arg)
{
	struct ends *ends = arg;
	struct end *mine = &ends->responder;
	struct engine *e = meet(ends->dir, mine, &ends->requester);

	put_word(e, WR_REMOTE + 8, 1000);
	ck_assert_int_eq(post_recv(e->qp, e->mem, 8, e->key, 1), 0);
	atomic_store(&mine->step, 2);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word_at(e, 0), 55);
	/* data written before the SEND is visible */
	ck_assert_uint_eq(word_at(e, WR_REMOTE), 55);
	ck_assert_uint_eq(word_at(e, WR_REMOTE + 16), 55);
	wait_until(atomic_load(&ends->requester.step) == 2);
	ck_assert_uint_eq(word_at(e, WR_REMOTE + 8), 1001);
	engine_free(e);
	return 0;
}

static void start_pair(struct ends **ends, pid_t *pid)
{
	*ends = mmap(NULL, sizeof(**ends), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(*ends, MAP_FAILED);
	snprintf((*ends)->dir, sizeof((*ends)->dir), "%s", new_dir());
	*pid = spawn(responder, *ends);
}

/* Private memory: the WRITEs of a list are in flight together. */
START_TEST(two_processes)
{
	struct ibv_send_wr *bad;
	struct ends *ends;
	struct engine *e;
	struct wr w[4];
	pid_t pid;
	int i;

	start_pair(&ends, &pid);
	e = meet(ends->dir, &ends->requester, &ends->responder);
	wait_until(atomic_load(&ends->responder.step) == 2);
	put_word(e, 0, 55);
	for (i = 0; i < 4; i++) {
		wr_fill(&w[i], e, IBV_WR_RDMA_WRITE, i, IBV_SEND_SIGNALED);
		w[i].wr.wr.rdma.rkey = ends->responder.key;
		w[i].wr.wr.rdma.remote_addr =
			ends->responder.addr + WR_REMOTE + (i == 1 ? 16 : 0);
		w[i].wr.next = i < 3 ? &w[i + 1].wr : NULL;
	}
	w[3].wr.opcode = IBV_WR_SEND;
	ck_assert_int_eq(sq_post(e->qp, &w[0].wr, &bad), 0);
	for (i = 0; i < 4; i++)
		expect_wc(e->cq, i, IBV_WC_SUCCESS);

	wr_fill(&w[0], e, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, IBV_SEND_SIGNALED);
	w[0].wr.wr.atomic.rkey = ends->responder.key;
	w[0].wr.wr.atomic.remote_addr = ends->responder.addr + WR_REMOTE + 8;
	wr_fill(&w[1], e, IBV_WR_RDMA_READ, 5, IBV_SEND_SIGNALED);
	w[1].wr.wr.rdma.rkey = ends->responder.key;
	w[1].wr.wr.rdma.remote_addr = ends->responder.addr + WR_REMOTE + 8;
	w[1].sge.addr += 8;
	w[0].wr.next = &w[1].wr;
	ck_assert_int_eq(sq_post(e->qp, &w[0].wr, &bad), 0);
	expect_wc(e->cq, 4, IBV_WC_SUCCESS);
	expect_wc(e->cq, 5, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word_at(e, 0), 1000);
	ck_assert_uint_eq(word_at(e, 8), 1001);
	atomic_store(&ends->requester.step, 2);
	ck_assert_int_eq(reap_child(pid), 0);
	engine_free(e);
}
END_TEST

/* Claim an entry, and exit before it is published. */
static int die_with_claim(void *arg)
{
	struct engine *e = arg;
	struct urxe_cqe_ref ref;

	_exit(cq_begin(&e->cq->view, &ref) ? 0 : 1);
}

/*
 * A dead claimer does not block the CQ, even if its context lives on in its
 * parent.
 */
START_TEST(dead_claimer)
{
	struct engine *e = engine_new();
	int status;

	ck_assert_int_eq(waitpid(spawn(die_with_claim, e), &status, 0) > 0, 1);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED), 0);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_none(e->cq);
	engine_free(e);
}
END_TEST

static uint32_t looks;

static bool look(struct urxe_context *ctx, uint32_t polls)
{
	(void)ctx;
	ck_assert_uint_le(polls, POLL_CHECK_INTERVAL);
	looks++;
	return true;
}

/*
 * Return how often the CQ looks for work elsewhere in 64 empty polls by
 * ibv_start_poll(), which begin so.
 */
static uint32_t looks_of(struct urxe_cq *cq)
{
	uint32_t i;

	looks = 0;
	for (i = 1; i <= 64; i++) {
		store_relaxed(&cq->empty, i);
		poll_begin(cq);
	}
	return looks;
}

/* Only polls that make progress look more often. */
START_TEST(work_elsewhere)
{
	struct engine *e = engine_new();

	store_release(&e->ctx->poller_waits, look);
	ck_assert_uint_eq(looks_of(e->cq), 64 / POLL_CHECK_INTERVAL);
	fetch_add_relaxed(&e->cq->stalled, 1);
	ck_assert_uint_eq(looks_of(e->cq), 64 / POLL_ELSEWHERE_INTERVAL);
	fetch_sub_relaxed(&e->cq->stalled, 1);
	store_release(&e->ctx->poller_waits, NULL);
	engine_free(e);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine");

	add(s, write_read);
	add(s, atomics);
	add(s, send_recv);
	add(s, inline_data);
	add(s, datagram);
	add(s, shared_receives);
	add(s, rnr);
	add(s, flush);
	add(s, two_processes);
	add(s, dead_claimer);
	add(s, work_elsewhere);
	return run_suite(s);
}
