// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fork() with the device open: which memory and objects parent and child use
 * afterwards.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../harness.h"

/* Send messages @from to @to - 1 from a to b, and check them. */
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

/* A child that exits at once does not affect the connection of its parent. */
START_TEST(child_exits)
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

/*
 * While a child exists, the connection of its parent works, with each kind of
 * memory.
 */
START_TEST(child_stays)
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

/* Child: return 0 if the buffer is still zero after 100 ms. */
static int look_at_memory(void *arg)
{
	struct node *n = arg;

	sleep_ms(100);
	return !node_all(n, 0, 64, 0);
}

/*
 * A WRITE after the fork reaches the parent's memory, not the child's copy.
 */
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

static const enum ibv_wr_opcode moving[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
					     IBV_WR_RDMA_READ };

struct from_hole {
	struct duo *d;
	enum ibv_wr_opcode op;
};

static int post_from_hole(void *arg)
{
	struct from_hole *f = arg;

	ck_ok(post(f->d, f->op, 1, 8192, 4096, 0, 0));
	expect(f->d->a.scq, 1, IBV_WC_LOC_PROT_ERR);
	return 0;
}

static void do_receive_nothing(struct node *b, void *arg)
{
	(void)arg;
	expect_none(b->rcq, QUIET_MS);
}

/*
 * A WR that a child posts on the parent's QP refers to the parent's memory.
 * If the parent has unmapped that, the WR fails with LOC_PROT_ERR at the
 * requester, and the responder is not affected.
 */
START_TEST(unmapped_by_the_parent)
{
	struct from_hole f = { .op = moving[_i] };
	struct opts o = default_opts();
	struct duo d;

	if (under_adoption()) /* peers still map the pages */
		return;
	may_leak();
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	b_recv(&d, 1, 0, 4096);
	f.d = &d;
	leave_hole((char *)d.a.buf + 8192, 4096);
	ck_ok(reap_child(spawn(post_from_hole, &f)));
	on_b(&d, do_receive_nothing, NULL, 0);
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	duo_close(&d);
}
END_TEST

/* Child: register memory in the parent's PD; open and close the device. */
static int register_and_open(void *arg)
{
	struct opts o = default_opts();
	struct node *n = arg, own;
	struct ibv_mr *mr;

	mr = ibv_reg_mr(n->pd, n->buf, 64, ALL_ACCESS);
	if (!mr || ibv_dereg_mr(mr))
		return 1;
	node_open(&own, NULL, MEM_HEAP, &o);
	node_close(&own);
	return 0;
}

/*
 * A child that was created by the system call, so that no handler of
 * pthread_atfork ran, may use the device as the parent did.
 */
START_TEST(child_of_raw_fork)
{
	struct opts o = default_opts();
	struct node n;
	pid_t child;

	if (under_sanitizer()) /* its own atfork handlers did not run */
		return;
	node_open(&n, NULL, MEM_HEAP, &o);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	ck_assert_int_ge(child, 0);
	if (!child)
		_exit(register_and_open(&n));
	ck_assert_int_eq(reap_child(child), 0);
	node_close(&n);
}
END_TEST

/* Child: open the device, connect to the parent, and write to its memory. */
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

/*
 * The child of a process that uses the device opens the device itself, with
 * and without ibv_fork_init() in the parent.
 */
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

/* A SEND that ends with RNR_RETRY_EXC_ERR by its timers, without polling. */
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
	double end;

	(void)arg;
	o.rnr_retry = 2;
	o.min_rnr_timer = 14;
	node_open(&n, NULL, MEM_HEAP, &o);
	addr = node_addr(&n);
	node_connect(&n, &addr);
	sge = node_sge(&n, 0, 8);
	ck_ok(post_wr(n.qp, &wr));
	/* no CQ is polled: the service thread has to drive the timers */
	for (end = now_ms() + WAIT_MS;
	     qp_state(n.qp) != IBV_QPS_ERR && now_ms() < end;)
		sleep_ms(1);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_ERR);
	expect(n.scq, 4, IBV_WC_RNR_RETRY_EXC_ERR);
	node_close(&n);
	return 0;
}

/*
 * Timers work in a child, which has not inherited the service thread, and in
 * the parent before and after the fork.
 */
START_TEST(timers_in_parent_and_child)
{
	child_with_timers(NULL);
	ck_assert_int_eq(reap_child(spawn(child_with_timers, NULL)), 0);
	child_with_timers(NULL);
}
END_TEST

/*
 * The parent destroys its objects, and opens the device again, while a child
 * exists that inherited them.
 */
START_TEST(close_while_child_lives)
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

/* ------------------------------ a fork while other threads are in verbs */

struct busy {
	struct node n;
	struct ibv_cq_ex *cq_ex;
	struct ibv_qp *qp_ex;
	struct ibv_srq *srq;
	_Atomic bool stop;
};

/*
 * Call verbs that do not change what parent and child share. Return false if
 * one of them fails: nothing is asserted here, because Check has locks that
 * may be taken at the fork.
 */
static bool use_all(struct busy *b)
{
	struct ibv_srq_attr srq_attr = { .srq_limit = 0 };
	struct ibv_poll_cq_attr poll_attr = { .comp_mask = 0 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_recv_wr *bad, wr = { .num_sge = 99 };
	struct ibv_wc wc;

	if (ibv_poll_cq(b->n.rcq, 1, &wc) ||
	    ibv_start_poll(b->cq_ex, &poll_attr) != ENOENT ||
	    ibv_query_qp(b->n.qp, &attr, IBV_QP_STATE, &init) ||
	    ibv_modify_srq(b->srq, &srq_attr, IBV_SRQ_LIMIT) ||
	    ibv_post_recv(b->n.qp, &wr, &bad) != EINVAL)
		return false;
	ibv_wr_start(ibv_qp_to_qp_ex(b->qp_ex));
	ibv_wr_abort(ibv_qp_to_qp_ex(b->qp_ex));
	return true;
}

static void *busy_thread(void *arg)
{
	struct busy *b = arg;

	while (!b->stop && use_all(b))
		;
	return NULL;
}

static int use_in_child(struct busy *b)
{
	int i, good = 0;

	for (i = 0; i < 3; i++)
		good += use_all(b);
	return good != 3;
}

static int destroy_in_child(struct busy *b)
{
	return ibv_destroy_qp(b->qp_ex) || ibv_destroy_qp(b->n.qp) ||
	       ibv_destroy_srq(b->srq) ||
	       ibv_destroy_cq(ibv_cq_ex_to_cq(b->cq_ex)) ||
	       ibv_destroy_cq(b->n.rcq) || ibv_destroy_cq(b->n.scq) ||
	       ibv_dereg_mr(b->n.mr) || ibv_dealloc_pd(b->n.pd) ||
	       ibv_close_device(b->n.ctx);
}

/*
 * Run fn in a child, which must not hang. Return its exit status or -signal.
 */
static int in_child(int (*fn)(struct busy *b), struct busy *b)
{
	pid_t child = fork();

	if (child)
		return reap_child(child);
	signal(SIGALRM, SIG_DFL); /* Check's kills the process group */
	alarm(WAIT_MS / 1000);
	_exit(fn(b));
}

static void make_busy(struct busy *b)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = 16 };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 8,
						   .max_sge = 1 } };
	struct ibv_qp_init_attr_ex qp = { .qp_type = IBV_QPT_RC };
	struct opts o = default_opts();

	node_open(&b->n, NULL, MEM_HEAP, &o);
	qp_to_init(b->n.qp, &o);
	b->cq_ex = ibv_create_cq_ex(b->n.ctx, &cq);
	ck_nonnull(b->cq_ex);
	b->srq = ibv_create_srq(b->n.pd, &srq);
	ck_nonnull(b->srq);
	qp.send_cq = qp.recv_cq = b->n.scq;
	qp.cap = o.cap;
	qp.pd = b->n.pd;
	qp.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	qp.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	b->qp_ex = ibv_create_qp_ex(b->n.ctx, &qp);
	ck_nonnull(b->qp_ex);
}

static void close_busy(struct busy *b)
{
	ck_ok(ibv_destroy_qp(b->qp_ex));
	ck_ok(ibv_destroy_srq(b->srq));
	ck_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(b->cq_ex)));
	node_close(&b->n);
}

/*
 * A fork while other threads are in verbs leaves no lock taken in the child.
 */
START_TEST(while_threads_are_busy)
{
	struct busy b = { .stop = false };
	pthread_t thread[2];
	int i;

	make_busy(&b);
	for (i = 0; i < 2; i++)
		ck_ok(pthread_create(&thread[i], NULL, busy_thread, &b));
	for (i = turns_of(200); i; i--)
		ck_assert_int_eq(in_child(use_in_child, &b), 0);
	b.stop = true;
	for (i = 0; i < 2; i++)
		ck_ok(pthread_join(thread[i], NULL));
	close_busy(&b);
}
END_TEST

/*
 * Fork a child that destroys the objects that it inherited. They are shared,
 * so they do not exist in this process either afterwards.
 */
static int parent_of_destroyer(void *arg)
{
	static struct busy b; /* its thread still uses it afterwards */
	pthread_t thread;

	(void)arg;
	make_busy(&b);
	ck_ok(pthread_create(&thread, NULL, busy_thread, &b));
	sleep_ms(2);
	return in_child(destroy_in_child, &b);
}

/*
 * A child can destroy the objects that it inherited, also if another thread
 * of its parent was using them at the fork.
 */
START_TEST(child_destroys_objects)
{
	int i;

	for (i = turns_of(30); i; i--)
		ck_assert_int_eq(reap_child(spawn(parent_of_destroyer, NULL)),
				 0);
}
END_TEST

static int go_on(struct busy *b)
{
	ibv_wr_abort(ibv_qp_to_qp_ex(b->qp_ex));
	return use_in_child(b);
}

/*
 * A fork between ibv_wr_start and ibv_wr_abort: parent and child both call
 * ibv_wr_abort, and can use the QP.
 */
START_TEST(fork_in_wr_batch)
{
	struct busy b = { .stop = false };

	make_busy(&b);
	ibv_wr_start(ibv_qp_to_qp_ex(b.qp_ex));
	ck_assert_int_eq(in_child(go_on, &b), 0);
	ibv_wr_abort(ibv_qp_to_qp_ex(b.qp_ex));
	ck_assert(use_all(&b));
	close_busy(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite("fork");

	add_loop(s, child_exits, WHERE_COUNT);
	add_loop(s, child_stays, WHERE_COUNT * MEM_COUNT);
	add(s, memory_of_the_parent);
	add_loop(s, unmapped_by_the_parent, 3);
	add(s, child_of_raw_fork);
	add_loop(s, child_opens_the_device, 2);
	add(s, timers_in_parent_and_child);
	add(s, close_while_child_lives);
	add(s, while_threads_are_busy);
	add(s, child_destroys_objects);
	add(s, fork_in_wr_batch);
	return run(s);
}
