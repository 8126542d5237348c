// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* fork() with the device open: who owns what afterwards. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

static void ping(struct duo *d, int from, int to)
{
	int i;

	for (i = from; i < to; i++) {
		node_fill(&d->a, 0, 256, i);
		b_recv(d, i, 512, 256);
		ck_ok(post(d, IBV_WR_SEND, i, 0, 256, 0, 0));
		expect_ok(d->a.scq, i, IBV_WC_SEND);
		ck_assert_uint_eq(b_wait_recv(d).wr_id, i);
		ck_assert(b_has(d, 512, 256, i));
	}
}

static int exit_at_once(void *arg)
{
	(void)arg;
	return 0;
}

/* A child that does nothing and ends changes nothing. */
START_TEST(child_that_ends)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ping(&d, 0, 10);
	for (i = 0; i < 5; i++) {
		ck_assert_int_eq(reap_child(spawn(exit_at_once, NULL)), 0);
		ping(&d, 10 * i, 10 * i + 10);
	}
	expect_no_async(d.a.ctx);
	duo_close(&d);
}
END_TEST

static int wait_for_pipe(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) != 1;
}

/* While it lives the parent goes on as well, with the same memory. */
START_TEST(child_that_stays)
{
	struct opts o = default_opts();
	struct duo d;
	pid_t child;
	int fd[2];

	duo_open(&d, _i % WHERE_COUNT, _i / WHERE_COUNT, MEM_HEAP, &o);
	ping(&d, 0, 10);
	ck_ok(pipe(fd));
	child = spawn(wait_for_pipe, fd);
	ping(&d, 10, 100);
	ck_assert_int_eq(write(fd[1], "x", 1), 1);
	ck_assert_int_eq(reap_child(child), 0);
	ping(&d, 100, 200);
	duo_close(&d);
}
END_TEST

/* What arrives after the fork arrives in the parent, not in the child. */
static int look_at_memory(void *arg)
{
	struct node *n = arg;

	sleep_ms(100);
	return !node_all(n, 0, 64, 0);
}

START_TEST(memory_of_the_parent)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct addr addr;
	struct node n;
	pid_t child;

	node_open(&n, NULL, MEM_HEAP, &o);
	addr = node_addr(&n);
	node_connect(&n, &addr);
	child = spawn(look_at_memory, &n);
	node_fill(&n, 1024, 64, 3);
	sge = node_sge(&n, 1024, 64);
	memset(&wr, 0, sizeof(wr));
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = n.base;
	wr.wr.rdma.rkey = n.mr->rkey;
	ck_ok(post_wr(n.qp, &wr));
	expect_ok(n.scq, 0, IBV_WC_RDMA_WRITE);
	ck_assert(node_has(&n, 0, 64, 3));
	ck_assert_int_eq(reap_child(child), 0);
	node_close(&n);
}
END_TEST

/* The child of a program that uses RDMA uses RDMA itself. */
static int child_as_peer(void *arg)
{
	int *sock = arg;
	struct opts o = default_opts();
	struct addr mine, peer;
	struct node n;
	int i;

	node_open(&n, NULL, MEM_HEAP, &o);
	mine = node_addr(&n);
	ck_assert_int_eq(write(sock[1], &mine, sizeof(mine)), sizeof(mine));
	ck_assert_int_eq(read(sock[1], &peer, sizeof(peer)), sizeof(peer));
	node_connect(&n, &peer);
	for (i = 0; i < 50; i++) {
		struct ibv_sge sge = node_sge(&n, 0, 100);
		struct ibv_send_wr wr = { .wr_id = i,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_RDMA_WRITE,
					  .send_flags = IBV_SEND_SIGNALED };

		node_fill(&n, 0, 100, i);
		wr.wr.rdma.remote_addr = peer.base + i * 128;
		wr.wr.rdma.rkey = peer.rkey;
		ck_ok(post_wr(n.qp, &wr));
		expect_ok(n.scq, i, IBV_WC_RDMA_WRITE);
	}
	node_close(&n);
	return 0;
}

START_TEST(child_opens_the_device)
{
	struct opts o = default_opts();
	struct addr mine, peer;
	struct node n;
	int sock[2], i;
	pid_t child;

	if (_i)
		ck_ok(ibv_fork_init());
	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	child = spawn(child_as_peer, sock);
	mine = node_addr(&n);
	ck_assert_int_eq(write(sock[0], &mine, sizeof(mine)), sizeof(mine));
	ck_assert_int_eq(read(sock[0], &peer, sizeof(peer)), sizeof(peer));
	node_connect(&n, &peer);
	ck_assert_int_eq(reap_child(child), 0);
	for (i = 0; i < 50; i++)
		ck_assert(node_has(&n, i * 128, 100, i));
	node_close(&n);
}
END_TEST

/* Work that waits for a timer, with the timer's thread gone in the child. */
static int child_with_timers(void *arg)
{
	struct opts o = default_opts();
	struct node n;
	struct addr addr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 4,
				  .num_sge = 1,
				  .sg_list = &sge,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };

	(void)arg;
	o.rnr_retry = 2;
	o.min_rnr_timer = 14;
	node_open(&n, NULL, MEM_HEAP, &o);
	addr = node_addr(&n);
	node_connect(&n, &addr);
	sge = node_sge(&n, 0, 8);
	ck_ok(post_wr(n.qp, &wr));
	/* nobody polls meanwhile: a thread has to do it */
	sleep_ms(50);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_ERR);
	expect(n.scq, 4, IBV_WC_RNR_RETRY_EXC_ERR);
	node_close(&n);
	return 0;
}

START_TEST(timers_in_parent_and_child)
{
	child_with_timers(NULL);
	ck_assert_int_eq(reap_child(spawn(child_with_timers, NULL)), 0);
	child_with_timers(NULL);
}
END_TEST

/* Objects that the parent made are destroyed by the parent. */
START_TEST(closing_with_a_living_child)
{
	struct ibv_device_attr attr;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	pid_t child;
	int fd[2], i;

	ck_ok(pipe(fd));
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	child = spawn(wait_for_pipe, fd);
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
	for (i = 0; i < 20; i++) {
		ctx = open_device();
		ck_ok(ibv_query_device(ctx, &attr));
		ck_ok(ibv_close_device(ctx));
	}
	ck_assert_int_eq(write(fd[1], "x", 1), 1);
	ck_assert_int_eq(reap_child(child), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite("fork");

	add_loop(s, child_that_ends, WHERE_COUNT);
	add_loop(s, child_that_stays, WHERE_COUNT * MEM_COUNT);
	add(s, memory_of_the_parent);
	add_loop(s, child_opens_the_device, 2);
	add(s, timers_in_parent_and_child);
	add(s, closing_with_a_living_child);
	return run(s);
}
