// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * WRs that are outstanding when their QP leaves RTS or is destroyed, programs
 * that do not poll, and forks.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../verbs/types.h"
#include "with.h"

#define LATE                                                            \
	"gather=1000,place=1000,deliver=1000,complete=1000,retry=1000," \
	"overtake=1000,reread=1000,ticks=1000"
#define LEN 512

static const int ops[] = { IBV_WR_RDMA_WRITE,
			   IBV_WR_SEND,
			   IBV_WR_RDMA_READ,
			   IBV_WR_RDMA_WRITE_WITH_IMM,
			   IBV_WR_ATOMIC_FETCH_AND_ADD,
			   IBV_WR_SEND };
#define OPS 6

static void open_late(struct duo *d, enum where where, const char *options)
{
	struct opts o = default_opts();

	with_options(options);
	o.channel = true;
	o.timeout = 12;
	o.retry_cnt = 1;
	duo_open(d, where, MEM_HEAP, MEM_HEAP, &o);
}

/* Post the WRs of ops[], and receives for them. */
static void post_all(struct duo *d)
{
	unsigned int i;

	for (i = 0; i < OPS; i++)
		b_recv(d, i, 1024 * i, LEN);
	for (i = 0; i < OPS; i++)
		if (ops[i] == IBV_WR_ATOMIC_FETCH_AND_ADD)
			ck_ok(post_atomic(d, ops[i], i, 1024 * i, 1024 * i, 1,
					  0));
		else
			ck_ok(post(d, ops[i], i, 1024 * i, LEN, 1024 * i, 0));
}

static void expect_flushed(struct duo *d)
{
	unsigned int i;
	bool flushed = false;
	struct ibv_wc wc;

	for (i = 0; i < OPS; i++) {
		wc = wait_wc(d->a.scq);
		ck_assert_uint_eq(wc.wr_id, i);
		flushed |= wc.status == IBV_WC_WR_FLUSH_ERR;
		ck_assert_int_eq(wc.status, flushed ? IBV_WC_WR_FLUSH_ERR :
						      IBV_WC_SUCCESS);
	}
	ck_assert(flushed);
}

/* Assert that the device accesses neither buffer any more. */
static void expect_rest(struct duo *d)
{
	memset(d->a.buf, 0x11, 65536);
	memset(d->b.buf, 0x22, 65536);
	expect_none(d->a.scq, QUIET_MS);
	ck_assert(node_all(&d->a, 0, 65536, 0x11));
	ck_assert(node_all(&d->b, 0, 65536, 0x22));
}

/*
 * ERR flushes the outstanding WRs, in order, and the device accesses no
 * buffer any more.
 */
START_TEST(error_flushes_in_order)
{
	struct duo d;

	open_late(&d, SAME_CONTEXT, LATE);
	post_all(&d);
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	expect_flushed(&d);
	expect_rest(&d);
	duo_close(&d);
}
END_TEST

/* After RESET, the slots of the outstanding WRs are used by other WRs. */
START_TEST(reset_discards_wrs)
{
	unsigned int i;
	struct duo d;

	open_late(&d, SAME_PROCESS, LATE);
	for (i = 0; i < 5; i++) {
		post_all(&d);
		ck_ok(qp_to(d.a.qp, IBV_QPS_RESET));
		ck_ok(qp_to(d.b.qp, IBV_QPS_RESET));
		expect_rest(&d);
		node_connect(&d.a, &d.at_b);
		node_connect(&d.b, &d.at_a);
		node_fill(&d.a, 0, LEN, i);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 9, 0, LEN, 0, 0));
		expect_ok(d.a.scq, 9, IBV_WC_RDMA_WRITE);
		ck_assert(b_has(&d, 0, LEN, i));
	}
	duo_close(&d);
}
END_TEST

/* After ibv_destroy_qp() the device accesses no buffer any more. */
START_TEST(destroy_ends_access)
{
	struct duo d;

	open_late(&d, SAME_CONTEXT, LATE);
	post_all(&d);
	ck_ok(ibv_destroy_qp(d.a.qp));
	expect_rest(&d);
	node_make_qp(&d.a);
	duo_close(&d);
}
END_TEST

/*
 * If the peer's QP is destroyed, the first WR that is not complete fails with
 * RETRY_EXC_ERR.
 */
START_TEST(peer_is_destroyed)
{
	struct ibv_wc wc;
	struct duo d;

	open_late(&d, _i, LATE);
	post_all(&d);
	b_destroy_qp(&d);
	wc = wait_wc(d.a.scq);
	ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
	duo_close(&d);
}
END_TEST

/* The same if the peer's process is killed. */
START_TEST(peer_is_killed)
{
	struct ibv_wc wc;
	struct duo d;

	may_leak();
	open_late(&d, TWO_PROCESSES, LATE);
	post_all(&d);
	ck_ok(kill(d.pid, SIGKILL));
	do
		wc = wait_wc(d.a.scq);
	while (wc.status == IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
}
END_TEST

/* SQD: WRs that were started are completed, then the event is raised. */
START_TEST(sq_drained)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };
	unsigned int i;
	struct duo d;

	open_late(&d, SAME_CONTEXT, LATE);
	post_all(&d);
	ck_ok(ibv_modify_qp(d.a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	expect_async(d.a.ctx, IBV_EVENT_SQ_DRAINED, d.a.qp);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	for (i = 0; i < OPS; i++)
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/* ------------------------------------------------------- no polling */

static double watch_memory(int i)
{
	static struct duo d;
	_Atomic uint8_t *last;
	double begin;

	if (!d.a.qp)
		open_late(&d, SAME_CONTEXT, "gather=1000,place=1000,retry=500");
	last = (_Atomic uint8_t *)d.b.buf + 4095;
	atomic_store(last, 0);
	memset(d.a.buf, i + 1, 4096);
	begin = now_ms();
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 4096, 0, 0));
	while (!atomic_load(last))
		ck_assert(now_ms() - begin < WAIT_MS);
	begin = now_ms() - begin;
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	return begin;
}

/* A program that polls memory rather than the CQ gets its data. */
START_TEST(poll_memory)
{
	int i;

	may_leak();
	for (i = 0; i < 20; i++)
		expect_within(50, watch_memory, i);
}
END_TEST

static double sleep_for_event(int i)
{
	static struct duo d;
	struct ibv_cq *cq;
	double begin;
	void *ctx;

	(void)i;
	if (!d.a.qp)
		open_late(&d, SAME_CONTEXT,
			  "gather=1000,place=1000,deliver=1000,retry=500");
	ck_ok(ibv_req_notify_cq(d.b.rcq, 0));
	b_recv(&d, 1, 0, LEN);
	begin = now_ms();
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, LEN, 0, 0));
	ck_assert(fd_readable(d.b.chan->fd, WAIT_MS));
	ck_ok(ibv_get_cq_event(d.b.chan, &cq, &ctx));
	ibv_ack_cq_events(cq, 1);
	begin = now_ms() - begin;
	expect(d.b.rcq, 1, IBV_WC_SUCCESS);
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	return begin;
}

/* A thread that sleeps on a completion channel is woken. */
START_TEST(completion_channel_wakes)
{
	int i;

	may_leak();
	for (i = 0; i < 20; i++)
		expect_within(50, sleep_for_event, i);
}
END_TEST

/*
 * A message that is sent before its receive is posted completes afterwards.
 */
START_TEST(send_before_receive)
{
	unsigned int i;
	struct duo d;

	open_late(&d, _i, "gather=500,place=1000,deliver=500,retry=100");
	for (i = 0; i < 20; i++) {
		node_fill(&d.a, 0, LEN, i);
		ck_ok(post(&d, i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE_WITH_IMM,
			   1, 0, LEN, 0, 0));
		expect_none(d.a.scq, 1);
		b_recv(&d, 1, 0, LEN);
		expect(d.a.scq, 1, IBV_WC_SUCCESS);
		ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
		ck_assert(b_has(&d, 0, LEN, i));
	}
	duo_close(&d);
}
END_TEST

/* After a fork the outstanding WRs are carried out by the parent only. */
START_TEST(fork_in_flight)
{
	unsigned int i;
	struct duo d;
	pid_t pid;

	open_late(&d, SAME_CONTEXT, LATE);
	post_all(&d);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		struct ibv_wc wc;

		sleep_ms(2);
		for (i = 0; i < 2000; i++)
			ibv_poll_cq(d.a.scq, 0, &wc);
		_exit(0);
	}
	ck_assert_int_eq(reap_child(pid), 0);
	for (i = 0; i < OPS; i++)
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	ck_assert_uint_eq(b_load64(&d, 4096), 1); /* executed once */
	duo_close(&d);
}
END_TEST

/* In the child: post on the parent's QP and poll the completion. */
static int post_in_child(struct duo *d)
{
	struct ibv_wc wc;
	int n;

	signal(SIGALRM, SIG_DFL); /* Check's handler would kill all */
	alarm(WAIT_MS / 1000);
	memset(d->a.buf, 9, LEN);
	if (post(d, IBV_WR_RDMA_WRITE, 77, 0, LEN, 8192, 0))
		return 1;
	while (!(n = ibv_poll_cq(d->a.scq, 1, &wc)))
		;
	return n != 1 || wc.wr_id != 77 || wc.status != IBV_WC_SUCCESS;
}

/* A child can post on its parent's QP and poll. */
START_TEST(fork_and_post)
{
	struct opts o = default_opts();
	unsigned int i;
	struct duo d;
	pid_t pid;

	with_options("complete=1000");
	duo_open(&d, SAME_CONTEXT, MEM_SHARED, MEM_SHARED, &o);
	for (i = 0; i < 3; i++) {
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, LEN, 0, 0));
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	}
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(post_in_child(&d));
	ck_assert_int_eq(reap_child(pid), 0);
	ck_assert(b_all(&d, 8192, LEN, 9));
	duo_close(&d);
}
END_TEST

/*
 * In the child: while the parent is stopped, post the receives that its SEND
 * waits for.
 */
static void serve_stopped(struct duo *d)
{
	struct ibv_wc wc;
	int i;

	signal(SIGALRM, SIG_DFL); /* Check's handler would kill all */
	alarm(WAIT_MS / 1000);
	kill(getppid(), SIGSTOP);
	for (i = 1; i < 3; i++)
		post_recv(&d->b, i, 0, LEN);
	for (i = 0; i < 2000; i++)
		ibv_poll_cq(d->a.scq, 0, &wc);
	kill(getppid(), SIGCONT);
}

/* A WR that is parked (RNR) during a fork is sent once, by the parent. */
START_TEST(fork_with_parked_wr)
{
	struct duo d;
	pid_t pid;

	open_late(&d, SAME_CONTEXT, _i ? "complete=1000" : "");
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, LEN, 0, 0));
	expect_none(d.a.scq, 5);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		serve_stopped(&d);
		_exit(0);
	}
	ck_assert_int_eq(reap_child(pid), 0);
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, LEN, 0, 0));
	expect(d.a.scq, 2, IBV_WC_SUCCESS);
	expect(d.b.rcq, 1, IBV_WC_SUCCESS);
	expect(d.b.rcq, 2, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/* Binds and LOCAL_INV need no packet: once executed, they have succeeded. */
START_TEST(local_operations)
{
	struct opts o = default_opts();
	struct ibv_send_wr bind = { .wr_id = 1,
				    .opcode = IBV_WR_BIND_MW,
				    .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr inv = { .wr_id = 2,
				   .opcode = IBV_WR_LOCAL_INV,
				   .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mw *mw;
	struct duo d;

	with_options("complete=1000,ticks=1000");
	o.mr_access |= IBV_ACCESS_MW_BIND;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	mw = ibv_alloc_mw(d.a.pd, IBV_MW_TYPE_2);
	ck_nonnull(mw);
	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	bind.bind_mw.bind_info.mr = d.a.mr;
	bind.bind_mw.bind_info.addr = (uintptr_t)d.a.buf;
	bind.bind_mw.bind_info.length = 64;
	bind.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	inv.invalidate_rkey = bind.bind_mw.rkey;
	ck_ok(post_wr(d.a.qp, &bind));
	ck_ok(post_wr(d.a.qp, &inv));
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	expect(d.a.scq, 2, IBV_WC_SUCCESS);
	ck_ok(ibv_dealloc_mw(mw));
	duo_close(&d);
}
END_TEST

#define BEFORE 7
#define ALL (BEFORE + 3)

static struct ibv_send_wr list_wr(struct duo *d, uint64_t i,
				  enum ibv_wr_opcode op, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = rdma_wr(d, op, i, sge, 1, 1024 * i);

	*sge = node_sge(&d->a, 1024 * i, LEN);
	wr.send_flags = IBV_SEND_SIGNALED;
	return wr;
}

/*
 * The WR that fails: at the responder, at the requester, or as a local
 * operation.
 */
static const struct wrong {
	enum ibv_wr_opcode op;
	enum ibv_wc_status status;
} wrong[] = {
	{ IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR },
	{ IBV_WR_LOCAL_INV, IBV_WC_MW_BIND_ERR },
};

static void fill_list(struct duo *d, struct ibv_mw *mw, const struct wrong *how,
		      struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	static const enum ibv_wr_opcode op[ALL] = {
		IBV_WR_RDMA_WRITE, IBV_WR_BIND_MW,
		IBV_WR_SEND,	   IBV_WR_LOCAL_INV,
		IBV_WR_RDMA_READ,  IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_BIND_MW,	   0,
		IBV_WR_LOCAL_INV,  IBV_WR_RDMA_WRITE
	};
	uint32_t key = ibv_inc_rkey(mw->rkey);
	unsigned int i;

	for (i = 0; i < ALL; i++) {
		wr[i] = list_wr(d, i, i == BEFORE ? how->op : op[i], &sge[i]);
		wr[i].next = i + 1 < ALL ? &wr[i + 1] : NULL;
		if (wr[i].opcode == IBV_WR_LOCAL_INV) {
			wr[i].invalidate_rkey = key;
			wr[i].num_sge = 0;
		}
		if (wr[i].opcode != IBV_WR_BIND_MW)
			continue;
		wr[i].num_sge = 0;
		wr[i].bind_mw.mw = mw;
		wr[i].bind_mw.rkey = key = ibv_inc_rkey(key);
		wr[i].bind_mw.bind_info.mr = d->a.mr;
		wr[i].bind_mw.bind_info.addr = (uintptr_t)d->a.buf;
		wr[i].bind_mw.bind_info.length = 64;
		wr[i].bind_mw.bind_info.mw_access_flags =
			IBV_ACCESS_REMOTE_READ;
	}
	if (how->op == IBV_WR_LOCAL_INV)
		wr[BEFORE].invalidate_rkey = d->a.mr->rkey;
	else if (how->op == IBV_WR_RDMA_READ)
		wr[BEFORE].wr.rdma.rkey ^= 1;
	else
		sge[BEFORE].lkey ^= 1;
}

/*
 * Local operations and others complete in the order of the queue.  WRs before
 * the failing one succeed, WRs behind it are flushed.
 */
START_TEST(wrs_before_an_error_succeed)
{
	const struct wrong *how = &wrong[_i / 2];
	struct opts o = default_opts();
	struct ibv_send_wr wr[ALL];
	struct ibv_sge sge[ALL];
	struct ibv_mw *mw;
	struct duo d;
	unsigned int i;

	with_options(_i % 2 ? LATE : "");
	o.mr_access |= IBV_ACCESS_MW_BIND;
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	mw = ibv_alloc_mw(d.a.pd, IBV_MW_TYPE_2);
	ck_nonnull(mw);
	b_recv(&d, 1, 0, LEN);
	b_recv(&d, 2, 0, LEN);
	fill_list(&d, mw, how, wr, sge);
	ck_ok(post_wr(d.a.qp, wr));
	for (i = 0; i < ALL; i++)
		expect(d.a.scq, i,
		       i < BEFORE  ? IBV_WC_SUCCESS :
		       i == BEFORE ? how->status :
				     IBV_WC_WR_FLUSH_ERR);
	ck_ok(ibv_dealloc_mw(mw));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("adversary, ends");

	add(s, error_flushes_in_order);
	add(s, local_operations);
	add_loop(s, wrs_before_an_error_succeed, 6);
	add(s, reset_discards_wrs);
	add(s, destroy_ends_access);
	add_loop(s, peer_is_destroyed, WHERE_COUNT);
	add(s, peer_is_killed);
	add(s, sq_drained);
	add(s, poll_memory);
	add(s, completion_channel_wakes);
	add_loop(s, send_before_receive, WHERE_COUNT);
	add(s, fork_in_flight);
	add(s, fork_and_post);
	add_loop(s, fork_with_parked_wr, 2);
	return run(s);
}
