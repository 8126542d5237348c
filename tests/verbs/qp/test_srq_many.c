// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Several processes send to one SRQ: concurrently, during a resize, and with
 * senders that are killed.
 *
 * The receiver is the test's own process.  The senders are forked before it
 * opens the device; a struct group in shared memory has the addresses and the
 * progress of all.  group->go is a step counter: 1 means that the receiver's
 * QPs are ready.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "../types.h"

#define SENDERS 3
#define EACH 2000
#define DEPTH 64
#define MAX_QPS 8

/*
 * Addresses of the QPs: receiver[i] and sender[i] are connected.  @here
 * counts senders that have a QP, @sent their messages.
 */
struct group {
	struct addr receiver[MAX_QPS], sender[MAX_QPS];
	_Atomic int here, go, done;
	_Atomic int sent[MAX_QPS];
};

/* Wait until *@word >= @value. */
static void wait_for(_Atomic int *word, int value)
{
	double end = now_ms() + WAIT_MS;

	while (*word < value) {
		ck_assert_msg(now_ms() < end, "a partner is late");
		sched_yield();
	}
}

static uint32_t length_of(uint32_t i)
{
	static const uint32_t len[] = { 8, 60, 64, 65, 200, 3000 };

	return len[i % 6];
}

static struct group *group;

static void send_all(struct node *n, int me, int count)
{
	uint32_t mark[2] = { (uint32_t)me, 0 };
	struct ibv_sge sge = node_sge(n, 0, 0);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	int i;

	for (i = 0; i < count; i++) {
		mark[1] = (uint32_t)i;
		node_put(n, 0, mark, sizeof(mark));
		sge.length = length_of((uint32_t)i);
		ck_ok(post_wr(n->qp, &wr));
		expect_ok(n->scq, 0, IBV_WC_SEND);
		group->sent[me] = i + 1;
	}
}

static struct node sender_node(int me)
{
	struct opts o = default_opts();
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	group->sender[me] = node_addr(&n);
	group->here++;
	wait_for(&group->go, 1);
	node_connect(&n, &group->receiver[me]);
	return n;
}

static int sender(void *arg)
{
	int me = *(int *)arg;
	struct node n = sender_node(me);

	send_all(&n, me, EACH);
	group->done++;
	wait_for(&group->go, 2);
	node_close(&n);
	return 0;
}

static int endless_sender(void *arg)
{
	int me = *(int *)arg;
	struct node n;

	leave_check();
	n = sender_node(me);
	send_all(&n, me, 1 << 30);
	return 1;
}

struct receiver {
	struct node n;
	struct ibv_srq *srq;
	struct ibv_qp *qp[MAX_QPS];
	int qps;
};

static void open_receiver(struct receiver *r, int qps)
{
	struct opts o = default_opts();
	int i;

	o.cqe = 4096;
	o.size = DEPTH * 4096;
	wait_for(&group->here, qps);
	node_open(&r->n, NULL, MEM_HEAP, &o);
	r->qps = qps;
	r->srq = make_srq(&r->n, DEPTH, 1);
	for (i = 0; i < qps; i++) {
		struct addr own = node_addr(&r->n);

		r->qp[i] = make_qp(&r->n, IBV_QPT_RC, r->srq);
		type_connect(r->qp[i], &o, &group->sender[i]);
		own.qpn = r->qp[i]->qp_num;
		group->receiver[i] = own;
	}
	for (i = 0; i < DEPTH; i++)
		ck_ok(post_srq(r->srq, &r->n, (uint64_t)i, 4096 * (size_t)i,
			       4096));
	group->go = 1;
}

static void close_receiver(struct receiver *r)
{
	int i;

	for (i = 0; i < r->qps; i++)
		ck_ok(ibv_destroy_qp(r->qp[i]));
	ck_ok(ibv_destroy_srq(r->srq));
	node_close(&r->n);
}

/*
 * Poll one message, check that it is complete and the next one of its sender,
 * and post its receive again if @repost.
 */
static void take(struct receiver *r, uint32_t *next, bool repost)
{
	struct ibv_wc wc = wait_wc(r->n.rcq);
	uint32_t mark[2];

	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	node_get(&r->n, 4096 * wc.wr_id, mark, sizeof(mark));
	ck_assert_uint_lt(mark[0], r->qps);
	ck_assert_uint_eq(wc.qp_num, r->qp[mark[0]]->qp_num);
	ck_assert_uint_eq(mark[1], next[mark[0]]);
	ck_assert_uint_eq(wc.byte_len, length_of(mark[1]));
	next[mark[0]]++;
	if (repost)
		ck_ok(post_srq(r->srq, &r->n, wc.wr_id, 4096 * wc.wr_id, 4096));
}

static void spawn_senders(pid_t *pid, int n, int (*fn)(void *))
{
	int i;

	group = shared_page();
	for (i = 0; i < n; i++)
		pid[i] = spawn(fn, &i);
}

/*
 * Messages of concurrent senders arrive once and in each sender's order, and
 * no receive is lost.
 */
START_TEST(several_senders)
{
	uint32_t next[MAX_QPS] = { 0 };
	struct receiver r;
	pid_t pid[SENDERS];
	int i;

	spawn_senders(pid, SENDERS, sender);
	open_receiver(&r, SENDERS);
	for (i = 0; i < SENDERS * EACH; i++)
		take(&r, next, true);
	expect_none(r.n.rcq, 1);
	wait_for(&group->done, SENDERS);
	group->go = 2;
	for (i = 0; i < SENDERS; i++)
		ck_assert_int_eq(reap_child(pid[i]), 0);
	/* all receives are posted again: the SRQ is full */
	ck_assert_int_eq(post_srq(r.srq, &r.n, 0, 0, 8), ENOMEM);
	close_receiver(&r);
}
END_TEST

/* ibv_modify_srq changes max_wr repeatedly while messages arrive. */
START_TEST(resize_under_traffic)
{
	static const uint32_t depth[] = { DEPTH, 4096, DEPTH, 300, 65, 1000 };
	uint32_t next[MAX_QPS] = { 0 };
	struct ibv_srq_attr attr;
	struct receiver r;
	pid_t pid[SENDERS];
	int i;

	spawn_senders(pid, SENDERS, sender);
	open_receiver(&r, SENDERS);
	for (i = 0; i < SENDERS * EACH; i++) {
		take(&r, next, true);
		if (i % 50)
			continue;
		attr.max_wr = depth[i / 50 % 6];
		ck_ok(ibv_modify_srq(r.srq, &attr, IBV_SRQ_MAX_WR));
		ck_ok(ibv_query_srq(r.srq, &attr));
		ck_assert_uint_eq(attr.max_wr, depth[i / 50 % 6]);
	}
	group->go = 2;
	for (i = 0; i < SENDERS; i++)
		ck_assert_int_eq(reap_child(pid[i]), 0);
	close_receiver(&r);
}
END_TEST

/*
 * A sender is killed while it sends.  The other one continues, and messages
 * that the killed one completed arrive.
 */
START_TEST(killed_sender)
{
	uint32_t next[MAX_QPS] = { 0 };
	struct receiver r;
	pid_t pid[2];
	int i;

	spawn_senders(pid, 2, endless_sender);
	open_receiver(&r, 2);
	for (i = 0; i < 500; i++)
		take(&r, next, true);
	kill(pid[0], SIGKILL);
	ck_assert_int_eq(reap_child(pid[0]), -SIGKILL);
	/* messages of the killed sender may still arrive */
	for (i = (int)next[1]; (int)next[1] < i + 2000;)
		take(&r, next, true);
	ck_assert_int_ge((int)next[0], group->sent[0]);
	kill(pid[1], SIGKILL);
	ck_assert_int_eq(reap_child(pid[1]), -SIGKILL);
	close_receiver(&r);
}
END_TEST

/* ------------------------------------- killed in the middle of a message */

#define LONG ((size_t)256 << 20) /* takes milliseconds to copy */

/*
 * Sender 0 sends one message of LONG bytes at step 2, sender 1 one of 4 KiB
 * at step 3.
 */
static int long_or_short(void *arg)
{
	int me = *(int *)arg;
	struct opts o = default_opts();
	struct ibv_send_wr wr = { .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_sge sge;
	struct node n;

	leave_check();
	o.size = me ? 4096 : LONG;
	node_open(&n, NULL, MEM_HEAP, &o);
	memset(n.buf, 0xab, o.size);
	group->sender[me] = node_addr(&n);
	group->here++;
	wait_for(&group->go, 1);
	node_connect(&n, &group->receiver[me]);
	wait_for(&group->go, me + 2);
	sge = node_sge(&n, 0, (uint32_t)o.size);
	wr.sg_list = &sge;
	wr.send_flags = IBV_SEND_SIGNALED;
	ck_ok(post_wr(n.qp, &wr));
	expect_ok(n.scq, 0, IBV_WC_SEND);
	node_close(&n);
	return 0;
}

/*
 * Kill sender 0 when its first byte has arrived.  True: its message has not
 * completed, so it was killed during the copy.
 */
static bool killed_in_time(struct receiver *r, pid_t pid)
{
	_Atomic char *first = r->n.buf;
	double end = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	group->go = 2;
	while (!atomic_load_explicit(first, memory_order_relaxed))
		ck_assert(now_ms() < end);
	kill(pid, SIGKILL);
	ck_assert(reap_child(pid) == -SIGKILL);
	return !ibv_poll_cq(r->n.rcq, 1, &wc);
}

/* wait_wc() for a program that polls ten times a second. */
static struct ibv_wc poll_seldom(struct ibv_cq *cq)
{
	double end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc))) {
		ck_assert_msg(now_ms() < end, "no completion");
		sleep_ms(100);
	}
	ck_assert_int_eq(n, 1);
	return wc;
}

static bool kill_in_copy(bool seldom)
{
	struct opts o = default_opts();
	struct receiver r = { .qps = 2 };
	struct ibv_wc wc;
	pid_t pid[2];
	bool hit;
	int i;

	spawn_senders(pid, 2, long_or_short);
	wait_for(&group->here, 2);
	o.size = LONG;
	node_open(&r.n, NULL, MEM_HEAP, &o);
	r.srq = make_srq(&r.n, 1, 1);
	for (i = 0; i < 2; i++) {
		group->receiver[i] = node_addr(&r.n);
		r.qp[i] = make_qp(&r.n, IBV_QPT_RC, r.srq);
		type_connect(r.qp[i], &o, &group->sender[i]);
		group->receiver[i].qpn = r.qp[i]->qp_num;
	}
	ck_ok(post_srq(r.srq, &r.n, 77, 0, LONG));
	group->go = 1;
	hit = killed_in_time(&r, pid[0]);
	if (hit) {
		/* its receive is available again, exactly once */
		group->go = 3;
		wc = seldom ? poll_seldom(r.n.rcq) : wait_wc(r.n.rcq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, 77);
		ck_assert_uint_eq(wc.qp_num, r.qp[1]->qp_num);
		ck_assert_uint_eq(wc.byte_len, 4096);
		ck_assert_int_eq(reap_child(pid[1]), 0);
		ck_ok(post_srq(r.srq, &r.n, 78, 0, 8));
		ck_assert_int_eq(post_srq(r.srq, &r.n, 79, 0, 8), ENOMEM);
	} else {
		kill(pid[1], SIGKILL);
		reap_child(pid[1]);
	}
	close_receiver(&r);
	return hit;
}

/*
 * A sender that is killed while it copies a message does not lose the
 * receive: another sender's message gets it.  _i: 0 the receiver polls
 * continuously, 1 seldom.
 */
START_TEST(killed_in_delivery)
{
	int i;

	if (under_adoption()) /* the copy is too short to be hit */
		return;
	for (i = 0; i < 20; i++)
		if (kill_in_copy(_i))
			return;
	ck_abort_msg("the sender was never killed while it copied");
}
END_TEST

/* --------------------------------------------------- forked receivers */

#define FEW 10

/*
 * Send FEW (sender 0, at step 2) or DEPTH messages (sender 1, at step 3), and
 * then wait to be killed.
 */
static int few_or_more(void *arg)
{
	int me = *(int *)arg;
	struct node n;

	leave_check();
	n = sender_node(me);
	wait_for(&group->go, me + 2);
	send_all(&n, me, me ? DEPTH : FEW);
	sleep_ms(6 * WAIT_MS);
	return 1;
}

/*
 * Poll FEW completions.  The data is not checked, since it is in the parent's
 * memory.
 */
static int take_few(void *arg)
{
	struct receiver *r = arg;
	int i;

	for (i = 0; i < FEW; i++)
		ck_assert_int_eq(wait_wc(r->n.rcq).status, IBV_WC_SUCCESS);
	return 0;
}

/*
 * Receives whose completions a forked child has polled stay consumed when
 * another sender dies: the parent does not post them again.  So sender 1 gets
 * DEPTH - FEW receives.
 */
START_TEST(polled_by_a_child)
{
	struct receiver r;
	pid_t pid[2];

	spawn_senders(pid, 2, few_or_more);
	open_receiver(&r, 2);
	group->go = 2;
	ck_assert_int_eq(reap_child(spawn(take_few, &r)), 0);
	kill(pid[0], SIGKILL);
	ck_assert_int_eq(reap_child(pid[0]), -SIGKILL);
	sleep_ms(300); /* until its exit is detected */
	group->go = 3;
	wait_for(&group->sent[1], DEPTH - FEW);
	sleep_ms(QUIET_MS);
	ck_assert_int_eq(group->sent[1], DEPTH - FEW);
	kill(pid[1], SIGKILL);
	ck_assert_int_eq(reap_child(pid[1]), -SIGKILL);
	close_receiver(&r);
}
END_TEST

int main(void)
{
	Suite *s = suite("srq_many");

	add(s, several_senders);
	add(s, resize_under_traffic);
	add_loop(s, killed_sender, 3);
	add_loop(s, killed_in_delivery, 2);
	add(s, polled_by_a_child);
	return run(s);
}
