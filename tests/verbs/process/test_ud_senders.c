// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Unreliable datagrams (UD) of several processes to one QP. */
#include <signal.h>
#include <string.h>

#include "../types.h"

#define SENDERS 3
#define EACH 300

/* The receiver's address, in memory that it shares with the senders. */
struct group {
	uint32_t qpn;
	union ibv_gid gid;
};

/*
 * Send EACH messages of 8 and 200 bytes in turn.  The first 8 bytes are the
 * QP number of the sender and the number of the message.
 */
static int sender(void *arg)
{
	struct opts o = default_opts();
	struct group *c = arg;
	struct ibv_ah *ah;
	uint64_t mark;
	struct node n;
	int i;

	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = make_qp(&n, IBV_QPT_UD, NULL);
	type_connect(n.qp, &o, NULL);
	ah = make_ah(&n, &c->gid, 0);
	for (i = 0; i < EACH; i++) {
		mark = (uint64_t)n.qp->qp_num << 32 | (uint32_t)i;
		node_put(&n, 0, &mark, 8);
		ck_ok(post_ud(&n, 1, 0, i % 2 ? 200 : 8, ah, c->qpn, QKEY));
		expect_ok(n.scq, 1, IBV_WC_SEND);
	}
	ck_ok(ibv_destroy_ah(ah));
	node_close(&n);
	return 0;
}

/*
 * Messages of several processes to one QP arrive once and in each sender's
 * order.
 */
START_TEST(several_senders)
{
	struct opts o = default_opts();
	uint32_t from[SENDERS] = { 0 }, next[SENDERS] = { 0 };
	struct group *c = shared_page();
	pid_t pid[SENDERS];
	struct ibv_wc wc;
	struct node n;
	uint64_t mark;
	int i, k;

	o.cap.max_recv_wr = SENDERS * EACH;
	o.cqe = SENDERS * EACH;
	o.size = SENDERS * EACH * 256;
	for (i = 0; i < SENDERS; i++)
		pid[i] = spawn_held(sender, c);
	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = make_qp(&n, IBV_QPT_UD, NULL);
	type_connect(n.qp, &o, NULL);
	for (i = 0; i < SENDERS * EACH; i++)
		ck_ok(post_recv(&n, (uint64_t)i, 256 * (size_t)i, 256));
	c->qpn = n.qp->qp_num;
	c->gid = n.gid;
	release_held();
	for (i = 0; i < SENDERS * EACH; i++) {
		wc = wait_wc(n.rcq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		node_get(&n, 256 * wc.wr_id + GRH, &mark, 8);
		ck_assert_uint_eq(wc.src_qp, mark >> 32);
		for (k = 0; from[k] && from[k] != wc.src_qp; k++)
			;
		ck_assert_int_lt(k, SENDERS);
		from[k] = wc.src_qp;
		ck_assert_uint_eq((uint32_t)mark, next[k]++);
		ck_assert_uint_eq(wc.byte_len,
				  GRH + ((uint32_t)mark % 2 ? 200 : 8));
	}
	for (i = 0; i < SENDERS; i++)
		ck_assert_int_eq(reap_child(pid[i]), 0);
	node_close(&n);
}
END_TEST

#define VICTIMS 20
#define DEPTH 64
#define SIZE (GRH + 4096)

static int endless_sender(void *arg)
{
	struct opts o = default_opts();
	struct group *c = arg;
	struct ibv_ah *ah;
	struct node n;

	leave_check();
	o.mtu = IBV_MTU_4096;
	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = make_qp(&n, IBV_QPT_UD, NULL);
	type_connect(n.qp, &o, NULL);
	ah = make_ah(&n, &c->gid, 0);
	for (;;) {
		ck_ok(post_ud(&n, 1, 0, 4096, ah, c->qpn, QKEY));
		expect_ok(n.scq, 1, IBV_WC_SEND);
	}
	return 0;
}

/* Poll and repost for @ms, or until the CQ is empty if @until_quiet. */
static void receive_for(struct node *n, double ms, bool until_quiet)
{
	double end = now_ms() + ms;
	struct ibv_wc wc;

	while (now_ms() < end) {
		if (ibv_poll_cq(n->rcq, 1, &wc) != 1) {
			if (until_quiet)
				break;
			continue;
		}
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_ok(post_recv(n, wc.wr_id, SIZE * wc.wr_id, SIZE));
	}
}

/*
 * Send a datagram to the node itself, again while no receive is posted for it:
 * the receive that a killed sender had taken is posted again some time later.
 */
static struct ibv_wc send_to_itself(struct node *n, struct ibv_ah *ah)
{
	const double end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	double again;

	do {
		ck_ok(post_ud(n, 5, 0, 8, ah, n->qp->qp_num, QKEY));
		expect_ok(n->scq, 5, IBV_WC_SEND);
		for (again = now_ms() + 200; now_ms() < again;)
			if (ibv_poll_cq(n->rcq, 1, &wc) == 1)
				return wc;
	} while (now_ms() < end);
	ck_abort_msg("a receive is lost");
	return wc;
}

/* Senders that are killed while they deliver a datagram lose no receive. */
START_TEST(killed_senders)
{
	struct opts o = default_opts();
	struct group *c = shared_page();
	bool seen[DEPTH] = { false };
	pid_t pid[VICTIMS];
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct node n;
	uint64_t i;

	for (i = 0; i < VICTIMS; i++)
		pid[i] = spawn_held(endless_sender, c);
	o.cap.max_recv_wr = DEPTH;
	o.cap.max_send_wr = DEPTH;
	o.size = DEPTH * SIZE;
	o.mtu = IBV_MTU_4096;
	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = make_qp(&n, IBV_QPT_UD, NULL);
	type_connect(n.qp, &o, NULL);
	for (i = 0; i < DEPTH; i++)
		ck_ok(post_recv(&n, i, SIZE * i, SIZE));
	c->qpn = n.qp->qp_num;
	c->gid = n.gid;
	release_held();
	for (i = 0; i < VICTIMS; i++) {
		receive_for(&n, 20, false);
		kill(pid[i], SIGKILL);
		ck_assert_int_eq(reap_child(pid[i]), -SIGKILL);
	}
	receive_for(&n, WAIT_MS, true);
	/* all receives are posted, and each is used once */
	ck_assert_int_eq(post_recv(&n, 0, 0, SIZE), ENOMEM);
	ah = make_ah(&n, &n.gid, 0);
	for (i = 0; i < DEPTH; i++) {
		wc = send_to_itself(&n, ah);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert(!seen[wc.wr_id]);
		seen[wc.wr_id] = true;
	}
	ck_ok(ibv_destroy_ah(ah));
	node_close(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite("ud_senders");

	add(s, several_senders);
	add(s, killed_senders);
	return run(s);
}
