// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SIGKILL of a process during traffic: its peer gets an error completion by
 * the timers of its QP, other connections work, and no state is left behind.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../harness.h"

#define DEPTH 32

/*
 * The operation that both ends post until they are killed or the connection
 * breaks.
 */
enum traffic { T_WRITE, T_READ, T_SEND, T_ATOMIC, T_COUNT };

struct end {
	int sock;
	enum traffic traffic;
	enum mem mem;
};

static void post_one(struct node *n, const struct addr *peer, enum traffic t,
		     uint64_t i)
{
	struct ibv_sge sge = node_sge(n, 0, t == T_ATOMIC ? 8 : 16384);
	struct ibv_send_wr wr = { .wr_id = i,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED };

	switch (t) {
	case T_WRITE:
	case T_READ:
		wr.opcode = t == T_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = peer->base + 16384;
		wr.wr.rdma.rkey = peer->rkey;
		break;
	case T_ATOMIC:
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = peer->base + 16384;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = peer->rkey;
		break;
	default:
		wr.opcode = IBV_WR_SEND;
	}
	ck_ok(post_wr(n->qp, &wr));
}

static void post_one_page(struct node *n, const struct addr *peer, uint64_t id,
			  enum ibv_wc_status status)
{
	struct ibv_sge sge = node_sge(n, 0, 4096);
	struct ibv_send_wr wr = { .wr_id = id,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma.remote_addr = peer->base,
				  .wr.rdma.rkey = peer->rkey };

	ck_ok(post_wr(n->qp, &wr));
	expect(n->scq, id, status);
}

static void connect_end(struct node *n, const struct end *e, struct addr *peer)
{
	struct opts o = default_opts();
	struct addr mine;

	o.timeout = 12; /* 17 ms */
	o.retry_cnt = 3;
	o.cap.max_recv_wr = 2 * DEPTH;
	node_open(n, NULL, e->mem, &o);
	mine = node_addr(n);
	ck_assert_int_eq(write(e->sock, &mine, sizeof(mine)), sizeof(mine));
	ck_assert_int_eq(read(e->sock, peer, sizeof(*peer)), sizeof(*peer));
	node_connect(n, peer);
}

/*
 * Post traffic until a send completion has an error. Return its status; *done
 * is the number of successful completions. Abort after WAIT_MS.
 */
static enum ibv_wc_status flood(struct node *n, const struct addr *peer,
				enum traffic t, uint64_t *done)
{
	uint64_t posted = 0, received = 0, i;
	double end = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	for (i = 0; i < 2 * DEPTH; i++)
		ck_ok(post_recv(n, i, 32768, 16384));
	for (*done = 0; now_ms() < end;) {
		while (posted - *done < DEPTH)
			post_one(n, peer, t, posted++);
		while (ibv_poll_cq(n->rcq, 1, &wc) == 1) {
			if (wc.status != IBV_WC_SUCCESS)
				break;
			ck_assert_uint_eq(wc.wr_id, received);
			received++;
			ck_ok(post_recv(n, received + 2 * DEPTH - 1, 32768,
					16384));
		}
		if (ibv_poll_cq(n->scq, 1, &wc) != 1)
			continue;
		ck_assert_uint_eq(wc.wr_id, *done);
		if (wc.status != IBV_WC_SUCCESS)
			return wc.status;
		++*done;
	}
	ck_abort_msg("the death of the peer was not noticed");
	return IBV_WC_SUCCESS;
}

static int victim(void *arg)
{
	struct end *e = arg;
	struct addr peer;
	struct node n;
	uint64_t done;

	leave_check();
	connect_end(&n, e, &peer);
	flood(&n, &peer, e->traffic, &done);
	/* its own QP may have failed first */
	pause();
	return 0;
}

/*
 * Kill the peer 10 ms + @us microseconds after the connection was made, and
 * check the completions of the survivor.
 */
static void kill_a_peer(enum traffic t, enum mem mem, int us)
{
	struct end mine = { .traffic = t, .mem = mem }, other = mine;
	enum ibv_wc_status status;
	struct addr peer;
	struct node n;
	uint64_t done;
	int sock[2], go[2];
	pid_t child, killer;
	char byte;

	ck_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	mine.sock = sock[0];
	other.sock = sock[1];
	child = spawn(victim, &other);
	/* forked before threads exist, released when traffic starts */
	ck_ok(pipe(go));
	killer = fork();
	ck_assert_int_ge(killer, 0);
	if (!killer) {
		if (read(go[0], &byte, 1) == 1) {
			usleep(10000 + us);
			kill(child, SIGKILL);
		}
		_exit(0);
	}
	connect_end(&n, &mine, &peer);
	ck_assert_int_eq(write(go[1], "", 1), 1);
	status = flood(&n, &peer, t, &done);
	ck_assert_msg(status == IBV_WC_RETRY_EXC_ERR ||
			      status == IBV_WC_RNR_RETRY_EXC_ERR,
		      "status %s", ibv_wc_status_str(status));
	ck_assert_int_eq(reap_child(child), -SIGKILL);
	ck_assert_int_eq(reap_child(killer), 0);
	close(go[0]);
	close(go[1]);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_ERR);
	/* the other WRs are flushed; closing the node does not hang */
	while (++done < DEPTH)
		expect(n.scq, done, IBV_WC_WR_FLUSH_ERR);
	node_close(&n);
}

/*
 * The survivor gets RETRY_EXC_ERR, or RNR_RETRY_EXC_ERR, then WR_FLUSH_ERR,
 * with each operation and kind of memory.
 */
START_TEST(in_traffic)
{
	enum traffic t = _i % T_COUNT;
	enum mem mem = _i / T_COUNT;
	int i;

	for (i = 0; i < 3; i++)
		kill_a_peer(t, mem, i * 777);
}
END_TEST

/*
 * After a peer was killed, other connections of the survivor and new
 * processes work.
 */
START_TEST(survivor_continues)
{
	struct opts o = default_opts(), soon = o;
	struct duo d, other;
	int i;

	soon.timeout = 12;
	soon.retry_cnt = 2;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &soon);
	duo_open(&other, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 10; i++)
		ck_ok(post(&d, IBV_WR_SEND, i, 0, 8, 0, 0));
	kill(d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	expect(d.a.scq, 0, IBV_WC_RETRY_EXC_ERR);
	for (i = 1; i < 10; i++)
		expect(d.a.scq, i, IBV_WC_WR_FLUSH_ERR);
	ck_ok(post(&other, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	expect_ok(other.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&other);
	node_close(&d.a);
	/* a process that starts later can connect, too */
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/*
 * An idle survivor that waits for a message gets no error: RC has no
 * keepalive. Its next request fails with RETRY_EXC_ERR.
 */
START_TEST(idle_survivor)
{
	struct opts o = default_opts();
	struct duo d;

	o.timeout = 11;
	o.retry_cnt = 1;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post_recv(&d.a, 1, 0, 64));
	kill(d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	expect_none(d.a.rcq, 100);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	ck_ok(post(&d, IBV_WR_RDMA_READ, 2, 0, 8, 0, 0));
	expect(d.a.scq, 2, IBV_WC_RETRY_EXC_ERR);
	expect(d.a.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	node_close(&d.a);
}
END_TEST

/* Open and close nodes until killed. */
static int busy_opener(void *arg)
{
	struct opts o = default_opts();
	struct node n;

	leave_check();
	o.channel = true;
	for (;;) {
		node_open(&n, NULL, *(int *)arg % MEM_COUNT, &o);
		node_close(&n);
	}
	return 0;
}

/*
 * Processes that are killed while they open, register or close leave nothing
 * that affects later processes.
 */
START_TEST(while_opening)
{
	struct opts o = default_opts();
	struct duo d;
	pid_t pid[2];
	int i, k;

	for (i = 0; i < 15; i++) {
		for (k = 0; k < 2; k++)
			pid[k] = spawn(busy_opener, &i);
		usleep(3000 + i * 1111);
		for (k = 0; k < 2; k++) {
			kill(pid[k], SIGKILL);
			ck_assert_int_eq(reap_child(pid[k]), -SIGKILL);
		}
	}
	duo_open(&d, TWO_PROCESSES, MEM_DM, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/*
 * Post a receive and arm its CQ. If *arg, first take the event and the
 * completion of the previous receive.
 */
static void arm_for_another(struct node *b, void *arg)
{
	struct ibv_cq *cq;
	void *context;

	if (*(int *)arg) {
		ck_assert(fd_readable(b->chan->fd, WAIT_MS));
		ck_ok(ibv_get_cq_event(b->chan, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		expect(b->rcq, 1, IBV_WC_SUCCESS);
	}
	ck_ok(post_recv(b, 1, 0, 64));
	ck_ok(ibv_req_notify_cq(b->rcq, 0));
}

/*
 * If a process is killed that had armed its CQ, a requester that raises the
 * event is not killed by SIGPIPE.
 */
START_TEST(sleeper_is_killed)
{
	struct opts o = default_opts();
	int again = 0;
	struct duo d;

	may_leak();
	o.channel = true;
	o.timeout = 12;
	o.retry_cnt = 3;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, arm_for_another, &again, sizeof(again));
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	again = 1;
	on_b(&d, arm_for_another, &again, sizeof(again));
	signal(SIGPIPE, SIG_DFL);
	kill(d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 8, 0, 0));
	wait_wc(d.a.scq);
	node_close(&d.a);
}
END_TEST

/*
 * After waitpid(2) has returned the PID of the killed responder, no request
 * to it succeeds.
 */
START_TEST(dead_after_waitpid)
{
	static const enum ibv_wr_opcode op[T_COUNT] = {
		[T_WRITE] = IBV_WR_RDMA_WRITE,
		[T_READ] = IBV_WR_RDMA_READ,
		[T_SEND] = IBV_WR_SEND,
		[T_ATOMIC] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	enum ibv_wr_opcode opcode = op[_i % T_COUNT];
	struct opts o = default_opts();
	struct duo d;
	int i;

	may_leak();
	o.timeout = 14; /* 67 ms, 8 attempts: the first WR must succeed */
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, _i / T_COUNT, &o);
	for (i = 0; i < 2; i++)
		b_recv(&d, i, 64, 8);
	for (i = 0; i < 2; i++) {
		if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
			ck_ok(post_atomic(&d, opcode, i, 0, 0, 1, 0));
		else
			ck_ok(post(&d, opcode, i, 0, 8, 0, 0));
		if (i)
			break;
		expect(d.a.scq, 0, IBV_WC_SUCCESS);
		kill(d.pid, SIGKILL);
		ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	}
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	node_close(&d.a);
}
END_TEST

/* A page that has the same address in each process of this test. */
static char page[4096] __attribute__((aligned(4096)));

/*
 * Responder: register the page and wait for SIGKILL. A child of this process
 * keeps the context alive.
 */
static int page_owner(void *arg)
{
	struct end *e = arg;
	struct opts o = default_opts();
	struct addr mine, peer;
	struct node n;

	leave_check();
	node_open(&n, NULL, MEM_HEAP, &o);
	mine = node_addr(&n);
	ck_ok(ibv_dereg_mr(n.mr));
	n.mr = ibv_reg_mr(n.pd, page, sizeof(page), ALL_ACCESS);
	ck_nonnull(n.mr);
	mine.base = (uintptr_t)page;
	mine.rkey = n.mr->rkey;
	if (write(e->sock, &mine, sizeof(mine)) != sizeof(mine) ||
	    read(e->sock, &peer, sizeof(peer)) != sizeof(peer))
		return 1;
	node_connect(&n, &peer);
	if (!fork()) {
		poll(&(struct pollfd){ .fd = e->sock }, 1, -1);
		_exit(0);
	}
	if (write(e->sock, "", 1) == 1)
		pause();
	return 0;
}

/* fork() with PID @pid. Return -1 if that is not permitted. */
static pid_t fork_as(pid_t pid)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal;
		uint64_t stack, stack_size, tls, set_tid, set_tid_size;
	} args = { .exit_signal = SIGCHLD,
		   .set_tid = (uintptr_t)&pid,
		   .set_tid_size = 1 };

	return syscall(SYS_clone3, &args, sizeof(args));
}

/*
 * If another process has the PID of a killed responder, its memory is not
 * written: RETRY_EXC_ERR. With _i == 1 that process has opened the device.
 */
START_TEST(pid_reused)
{
	struct opts o = default_opts();
	int sock[2], changed[2], go[2];
	struct addr mine, peer;
	pid_t owner, innocent;
	struct end e;
	struct node n;
	char byte;

	may_leak();
	ck_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	ck_ok(pipe(changed));
	ck_ok(pipe(go));
	e.sock = sock[1];
	owner = spawn(page_owner, &e);
	close(sock[1]);
	o.timeout = 14; /* 67 ms, 8 attempts: the first WR must succeed */
	node_open(&n, NULL, MEM_HEAP, &o);
	mine = node_addr(&n);
	ck_assert_int_eq(read(sock[0], &peer, sizeof(peer)), sizeof(peer));
	ck_assert_int_eq(write(sock[0], &mine, sizeof(mine)), sizeof(mine));
	node_connect(&n, &peer);
	ck_assert_int_eq(read(sock[0], &byte, 1), 1);
	memset(n.buf, 0x55, n.o.size);
	post_one_page(&n, &peer, 1, IBV_WC_SUCCESS);

	kill(owner, SIGKILL);
	ck_assert_int_eq(reap_child(owner), -SIGKILL);
	innocent = fork_as(owner);
	if (!innocent) {
		leave_check();
		if (_i)
			node_open(&n, NULL, MEM_HEAP, &o);
		if (write(changed[1], page, 1) != 1)
			_exit(1);
		if (read(go[0], &byte, 1) == 1 &&
		    write(changed[1], page, 1) == 1)
			_exit(0);
		_exit(1);
	}
	if (innocent < 0) {
		fprintf(stderr, "skipped: a PID of one's choice: %s\n",
			strerror(errno));
		return;
	}
	ck_assert_int_eq(read(changed[0], &byte, 1), 1); /* it runs */
	/* adopted pages exist as long as the context */
	post_one_page(&n, &peer, 2,
		      under_adoption() ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(write(go[1], "", 1), 1);
	ck_assert_int_eq(read(changed[0], &byte, 1), 1);
	ck_assert_int_eq(byte, 0);
	ck_assert_int_eq(reap_child(innocent), 0);
	node_close(&n);
	close(sock[0]);
}
END_TEST

int main(void)
{
	Suite *s = suite("kill");

	add_loop(s, in_traffic, T_COUNT * MEM_COUNT);
	add(s, survivor_continues);
	add(s, idle_survivor);
	add(s, sleeper_is_killed);
	add(s, while_opening);
	add_loop(s, dead_after_waitpid, T_COUNT * MEM_COUNT);
	add_loop(s, pid_reused, 2);
	return run(s);
}
