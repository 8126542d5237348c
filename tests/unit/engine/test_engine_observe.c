// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The callbacks of an observer (engine/core/observe.h), recorded as text.  A
 * letter, the wr_id, and :N with a nonzero argument:
 *
 *	L	LEAVES
 *	A	ARRIVES
 *	W	ANSWERED, with the status
 *	S	WAITS, with the reason
 *	G	AGAIN, with the reason
 *	C	completes(), with the status
 *	B	breaks(), with the state; wr_id 0
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/exec/order.h"
#include "engine/exec/sq_post.h"
#include "wire.h"
#include "engine/qp/flight.h"
#include "engine/exec/requester.h"
#include "engine/copy/transfer.h"
#include "engine/qp/wqe.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char seen[4096];

static void note(char point, uint64_t wr_id, uint32_t status)
{
	size_t n;

	pthread_mutex_lock(&lock);
	n = strlen(seen);
	ck_assert_uint_lt(n + 32, sizeof(seen));
	if (status)
		snprintf(seen + n, sizeof(seen) - n, "%c%u:%u ", point,
			 (unsigned int)wr_id, status);
	else
		snprintf(seen + n, sizeof(seen) - n, "%c%u ", point,
			 (unsigned int)wr_id);
	pthread_mutex_unlock(&lock);
}

static void saw_request(enum observe_point point, const struct urxe_qp *qp,
			const struct urxe_wqe *w, uint32_t what)
{
	switch (point) {
	case OBSERVE_LEAVES:
		ck_assert_uint_eq(what, 0);
		note('L', w->wr_id, 0);
		return;
	case OBSERVE_ARRIVES:
		if (qp->type == IBV_QPT_RC)
			ck_assert_uint_eq(what, qp->attr.dest_qp_num);
		if (qp->type == IBV_QPT_UD) {
			/* the lkeys of the receive are not known yet */
			ck_assert_uint_eq(atomic_load(&qp->guard->dest), what);
			ck_assert(guard_names(qp->guard, GUARD_SEND));
		}
		note('A', w->wr_id, 0);
		return;
	case OBSERVE_ANSWERED:
		note('W', w->wr_id, what);
		return;
	case OBSERVE_WAITS:
	case OBSERVE_AGAIN:
		note(point == OBSERVE_WAITS ? 'S' : 'G', w->wr_id, what);
		return;
	}
	ck_abort_msg("no such point");
}

static void saw_completion(const struct urxe_cqe *e)
{
	note('C', e->wr_id, e->status);
}

static void saw_break(const struct urxe_qp *qp, enum ibv_qp_state state)
{
	(void)qp;
	note('B', 0, state);
}

static struct urxe_observer observer = {
	.request = saw_request,
	.completes = saw_completion,
	.breaks = saw_break,
};

static struct engine *watched(void)
{
	struct engine *e = engine_new();

	observer_add(&observer);
	return e;
}

static void unwatch(struct engine *e)
{
	engine_free(e);
	urxe_observers = NULL;
}

/* Check all callbacks since the last call. */
static void expect_seen(const char *text)
{
	pthread_mutex_lock(&lock);
	ck_assert_str_eq(seen, text);
	*seen = 0;
	pthread_mutex_unlock(&lock);
}

static void forget_seen(void)
{
	pthread_mutex_lock(&lock);
	*seen = 0;
	pthread_mutex_unlock(&lock);
}

static unsigned int count(const char *what)
{
	unsigned int n = 0;
	const char *p;

	pthread_mutex_lock(&lock);
	for (p = seen; (p = strstr(p, what)); p++)
		n++;
	pthread_mutex_unlock(&lock);
	return n;
}

static void post_writes(struct engine *e)
{
	struct ibv_send_wr *bad;
	struct wr w[3];
	int i;

	for (i = 0; i < 3; i++) {
		wr_fill(&w[i], e, IBV_WR_RDMA_WRITE, i + 1,
			IBV_SEND_INLINE | (i != 1 ? IBV_SEND_SIGNALED : 0));
		w[i].sge.addr = (uintptr_t) "written";
		w[i].wr.next = i < 2 ? &w[i + 1].wr : NULL;
	}
	ck_assert_int_eq(sq_post(e->qp, &w[0].wr, &bad), 0);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
}

START_TEST(one_sided)
{
	struct engine *e = watched();

	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED), 0);
	expect_seen("L1 A1 W1 C1 ");
	ck_assert_int_eq(post(e, IBV_WR_RDMA_READ, 2, 0), 0);
	expect_seen("L2 A2 W2 ");
	ck_assert_int_eq(post(e, IBV_WR_LOCAL_INV, 3, 0), 0);
	ck_assert_uint_eq(count("L3"), 1);
	ck_assert_uint_eq(count("A3"), 0); /* no packet */
	unwatch(e);
}
END_TEST

START_TEST(list_of_writes)
{
	struct engine *e = watched();
	pid_t pid;

	post_writes(e);
	expect_seen("L1 A1 W1 C1 L2 A2 W2 L3 A3 W3 C3 ");
	/*
	 * WRITEs to another process are batched in one system call, if that
	 * copies in order
	 */
	pid = engine_other_process(e);
	post_writes(e);
	expect_seen(TRANSFER_IN_ORDER ? "L1 A1 L2 A2 L3 A3 W1 C1 W2 W3 C3 " :
					"L1 A1 W1 C1 L2 A2 W2 L3 A3 W3 C3 ");
	kill_child(pid);
	unwatch(e);
}
END_TEST

START_TEST(two_sided)
{
	struct engine *e = watched();

	ck_assert_int_eq(post_recv(e->qp, e->mem, 8, e->key, 9), 0);
	ck_assert_int_eq(post(e, IBV_WR_SEND, 1, IBV_SEND_SIGNALED), 0);
	expect_seen("L1 A1 W1 C1 C9 ");
	unwatch(e);
}
END_TEST

/*
 * A SEND without a receive leaves and arrives again with each retry, and is
 * answered once.
 */
START_TEST(rnr)
{
	struct engine *e = watched();

	e->qp->sh->min_rnr_timer = 31; /* half a second */
	ck_assert_int_eq(post(e, IBV_WR_SEND, 1, IBV_SEND_SIGNALED), 0);
	expect_none(e->cq);
	ck_assert_uint_ge(count("L1 A1 "), 2);
	ck_assert_uint_eq(count("W1") + count("C1") + count("G"), 0);
	ck_assert_uint_eq(count("S1:1"), 1);
	ck_assert_uint_eq(count("S"), 1);
	ck_assert_int_eq(post_recv(e->qp, e->mem, 8, e->key, 9), 0);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 9, IBV_WC_SUCCESS);
	ck_assert_uint_eq(count("L1 A1 W1 C1 C9 "), 1);
	ck_assert_uint_eq(count("W"), 1);
	ck_assert_uint_eq(count("C"), 2);
	unwatch(e);
}
END_TEST

/*
 * AGAIN is reported for each expiry of the timer, until no retries are left.
 */
START_TEST(timers)
{
	struct engine *e = watched();

	e->qp->sh->min_rnr_timer = 1; /* 10 us */
	e->qp->attr.rnr_retry = 3;
	ck_assert_int_eq(post(e, IBV_WR_SEND, 1, IBV_SEND_SIGNALED), 0);
	expect_wc(e->cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	ck_assert_uint_eq(count("S1:1"), 1);
	ck_assert_uint_eq(count("G1:1"), 3);
	ck_assert_uint_eq(count("B0:6"), 1);
	unwatch(e);
}
END_TEST

/* A NAK, flushed WRs and local errors. */
START_TEST(refused)
{
	struct engine *e = watched();
	struct ibv_send_wr *bad;
	struct wr w;

	ck_assert_int_eq(post_recv(e->qp, e->mem, 8, e->key, 9), 0);
	wr_fill(&w, e, IBV_WR_RDMA_READ, 1, 0);
	w.wr.wr.rdma.rkey ^= 1;
	ck_assert_int_eq(sq_post(e->qp, &w.wr, &bad), 0);
	expect_seen("L1 A1 W1:10 C1:10 B0:6 C9:5 ");
	/* flushed: it does not leave */
	ck_assert_int_eq(post(e, IBV_WR_SEND, 2, 0), 0);
	expect_seen("C2:5 ");
	/* a request with a local error does not arrive */
	engine_qp_set(e->qp, IBV_QPS_RESET);
	engine_qp_connect(e->qp, e->qp->qpn);
	wr_fill(&w, e, IBV_WR_SEND, 3, 0);
	w.sge.lkey ^= 1;
	ck_assert_int_eq(sq_post(e->qp, &w.wr, &bad), 0);
	ck_assert_uint_eq(count("W3:4 C3:4"), 1);
	ck_assert_uint_eq(count("A"), 0);
	unwatch(e);
}
END_TEST

/*
 * Post a WR that has no ibv_send_wr: a FLUSH without a placement type, or an
 * ATOMIC_WRITE of 4 bytes.  Both are invalid.
 */
static void post_extended(struct urxe_qp *qp, uint8_t opcode)
{
	struct urxe_wqe *w;

	urxe_lock(&qp->lock);
	ck_assert_int_eq(wqe_begin(qp, opcode, 0, 1, &w), 0);
	w->length = opcode == URXE_WR_ATOMIC_WRITE ? 4 : 0;
	w->flush.type = 0;
	qp->sq.prod++;
	requester_run(qp);
	urxe_unlock(&qp->lock);
}

enum peer { PEER_READY, PEER_NO_RECEIVE, PEER_SILENT, PEERS };

/*
 * Post a WR that has a wrong lkey (@key), or exceeds max_rd_atomic.  Return
 * whether it failed locally.
 */
static bool refuse(struct engine *e, uint8_t opcode, bool key, enum peer peer)
{
	struct ibv_send_wr *bad;
	struct wr w;
	bool failed;

	engine_qp_set(e->qp, IBV_QPS_RESET);
	engine_qp_connect(e->qp, e->qp->qpn);
	e->qp->attr.timeout = 0; /* no timeout */
	e->qp->attr.rnr_retry = 7;
	if (peer != PEER_NO_RECEIVE)
		ck_assert_int_eq(post_recv(e->qp, e->mem, 8, e->key, 9), 0);
	if (peer == PEER_SILENT)
		e->qp->psn++;
	forget_seen();
	wr_fill(&w, e, opcode, 1, 0);
	if (key)
		w.sge.lkey ^= 1;
	else
		e->qp->attr.max_rd_atomic = 0;
	if (opcode == URXE_WR_FLUSH || opcode == URXE_WR_ATOMIC_WRITE)
		post_extended(e->qp, opcode);
	else
		ck_assert_int_eq(sq_post(e->qp, &w.wr, &bad), 0);
	failed = count("W1:");
	/* a SEND_WITH_INV that cannot invalidate is not answered */
	if (peer == PEER_READY)
		ck_assert_uint_eq(count("W1"),
				  key || opcode != IBV_WR_SEND_WITH_INV);
	ck_assert_msg(!count("A1") == (failed || peer == PEER_SILENT),
		      "opcode %u: %s", opcode, seen);
	return failed;
}

/*
 * Local errors are found also if the peer has no receive or does not respond.
 */
START_TEST(local_errors)
{
	struct engine *e = watched();
	unsigned int i, failed = 0;

	for (i = 0; i < OPCODES; i++) {
		if (opcodes[i] == IBV_WR_LOCAL_INV ||
		    opcodes[i] == IBV_WR_BIND_MW)
			continue;
		/*
		 * the local buffer of a READ or atomic is checked with the
		 * response
		 */
		if (order_class_of(opcodes[i]) != ORDER_READ &&
		    order_class_of(opcodes[i]) != ORDER_ATOMIC)
			failed += refuse(e, opcodes[i], true, _i);
		failed += refuse(e, opcodes[i], false, _i);
	}
	/* seven by key, type or length; five by max_rd_atomic */
	ck_assert_uint_eq(failed, 7 + 5);
	unwatch(e);
}
END_TEST

/* ------------------------------------------------------- in flight */

/*
 * A response is observed when it arrives, also for a WR that is flushed then.
 */
START_TEST(out_of_order)
{
	struct wire wire = { .verdict = WR_IN_FLIGHT, .follows = true };
	struct engine *e = watched();

	e->qp->transport_data = &wire;
	e->qp->transport = &wire_transport;
	ck_assert_int_eq(post(e, IBV_WR_RDMA_READ, 1, IBV_SEND_SIGNALED), 0);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_READ, 2, IBV_SEND_SIGNALED), 0);
	wire_answer(e, 1, IBV_WC_SUCCESS);
	expect_seen("L1 L2 W2 ");
	wire_answer(e, 0, IBV_WC_REM_ACCESS_ERR);
	expect_seen("W1:10 C1:10 B0:6 C2:5 ");
	unwatch(e);
}
END_TEST

/* A completion that does not fit into the CQ is not observed. */
START_TEST(lost_completion_not_observed)
{
	struct engine *e = watched();
	struct urxe_cq *cq = e->cq;
	struct urxe_qp *qp = e->qp;

	e->cq = engine_cq(e->ctx, 1);
	e->cq->sh->flags |= URXE_CQ_IGNORE_OVERRUN;
	e->qp = engine_qp(IBV_QPT_RC, e->cq, e->cq, NULL);
	engine_qp_connect(e->qp, e->qp->qpn);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED), 0);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 2, IBV_SEND_SIGNALED), 0);
	expect_seen("L1 A1 W1 C1 L2 A2 W2 ");
	engine_qp_close(e->qp);
	engine_cq_close(e->cq);
	e->qp = qp;
	e->cq = cq;
	unwatch(e);
}
END_TEST

/* No peer: the request leaves, and does not arrive. */
START_TEST(no_peer)
{
	struct engine *e = watched();

	engine_qp_set(e->qp, IBV_QPS_RESET);
	engine_qp_connect(e->qp, e->qp->qpn);
	e->qp->attr.timeout = 0; /* no timeout */
	e->qp->psn++;
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 1, 0), 0);
	ck_assert_uint_ge(count("L1"), 1);
	ck_assert_uint_eq(count("A1"), 0);
	engine_qp_set(e->qp, IBV_QPS_ERR);
	ck_assert_uint_eq(count("W1"), 0);
	ck_assert_uint_eq(count("C1:5"), 1);
	unwatch(e);
}
END_TEST

START_TEST(datagram)
{
	struct engine *e = watched();
	struct urxe_qp *ud = engine_qp(IBV_QPT_UD, e->cq, e->cq, NULL);
	struct urxe_ah ah = { .ctx = e->ctx, .pd = ud->sh->pd };
	struct ibv_send_wr *bad;
	struct wr w;

	engine_qp_connect(ud, 0);
	ck_assert_int_eq(post_recv(ud, e->mem + 100, 48, e->key, 9), 0);
	wr_fill(&w, e, IBV_WR_SEND, 1, 0);
	w.wr.wr.ud.ah = &ah.ah;
	w.wr.wr.ud.remote_qpn = ud->qpn;
	w.wr.wr.ud.remote_qkey = ENGINE_QKEY;
	ck_assert_int_eq(sq_post(ud, &w.wr, &bad), 0);
	expect_seen("L1 A1 W1 C9 ");
	/* without a receive the datagram arrives, and that is all */
	ck_assert_int_eq(sq_post(ud, &w.wr, &bad), 0);
	expect_seen("L1 A1 W1 ");
	w.wr.wr.ud.remote_qkey++; /* no QP has this Q_Key */
	ck_assert_int_eq(sq_post(ud, &w.wr, &bad), 0);
	expect_seen("L1 W1 ");
	engine_qp_close(ud);
	unwatch(e);
}
END_TEST

/*
 * The guard names each member in turn, without the receive's keys of the
 * previous member.
 */
START_TEST(multicast)
{
	static const uint8_t group[16] = { 0xff, 0x0e, [15] = 1 };
	struct engine *e = watched();
	struct urxe_qp *ud = engine_qp(IBV_QPT_UD, e->cq, e->cq, NULL);
	struct urxe_ah ah = { .ctx = e->ctx, .pd = ud->sh->pd };
	pid_t pid = engine_other_process(e);
	struct urxe_qp *member[2];
	struct ibv_send_wr *bad;
	char text[8] = "to all";
	struct wr w;
	int i;

	engine_qp_connect(ud, 0);
	for (i = 0; i < 2; i++) {
		member[i] = engine_qp(IBV_QPT_UD, e->cq, e->cq, NULL);
		engine_qp_connect(member[i], 0);
		ck_assert_int_eq(
			mcast_attach(e->ctx->fabric, group, member[i]->qpn), 1);
	}
	memcpy(ah.av.dgid, group, sizeof(group));
	wr_fill(&w, e, IBV_WR_SEND, 1, IBV_SEND_INLINE);
	w.sge.addr = (uintptr_t)text;
	w.wr.wr.ud.ah = &ah.ah;
	w.wr.wr.ud.remote_qpn = URXE_MCAST_QPN;
	w.wr.wr.ud.remote_qkey = ENGINE_QKEY;
	/*
	 * members are looked up in the first round, and known in the second
	 */
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(post_recv(member[0], e->mem, 48, e->key, 8),
				 0);
		ck_assert_int_eq(post_recv(member[1], e->mem, 48, e->key, 9),
				 0);
		ck_assert_int_eq(sq_post(ud, &w.wr, &bad), 0);
		expect_wc(e->cq, 8, IBV_WC_SUCCESS);
		expect_wc(e->cq, 9, IBV_WC_SUCCESS);
	}
	kill_child(pid);
	for (i = 0; i < 2; i++)
		engine_qp_close(member[i]);
	engine_qp_close(ud);
	unwatch(e);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine, observed");

	add(s, one_sided);
	add(s, list_of_writes);
	add(s, two_sided);
	add(s, rnr);
	add(s, timers);
	add(s, refused);
	add_loop(s, local_errors, PEERS);
	add(s, out_of_order);
	add(s, lost_completion_not_observed);
	add(s, no_peer);
	add(s, datagram);
	add(s, multicast);
	return run_suite(s);
}
