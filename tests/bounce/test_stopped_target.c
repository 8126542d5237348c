// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copy path 4 with a target that is stopped: it cannot copy, and the requester
 * treats it as one that does not respond.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../pause.h"
#include "exchange.h"

/*
 * Connect again.  impatient: the requester gives up after 0.2 s, too soon for
 * a bouncer on a busy machine; otherwise after 34 s.
 */
static void renew(struct duo *d, bool impatient)
{
	d->a.o.timeout = impatient ? 14 : 20; /* 67 ms, 4.3 s */
	d->a.o.retry_cnt = impatient ? 2 : 7;
	duo_renew(d);
}

/* ------------------------------------------------------- stopped */

/*
 * The peer is stopped.  Verbs return, the IB timers run, and other
 * connections continue.  If the peer is continued in time, this connection
 * continues, too; else the WR ends with IBV_WC_RETRY_EXC_ERR
 * (ibv_modify_qp(3): timeout, retry_cnt).
 */
START_TEST(peer_stopped)
{
	static const enum ibv_wr_opcode op[] = { W, R, S };
	static const enum ibv_wc_opcode wc[] = { IBV_WC_RDMA_WRITE,
						 IBV_WC_RDMA_READ,
						 IBV_WC_SEND };
	bool comes_back = _i / 3;
	struct opts o = default_opts();
	struct duo d, other;
	double start;

	may_leak();
	o.timeout = 20;
	o.retry_cnt = 7;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	duo_open(&other, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	exchange(&d, 1);
	if (!comes_back)
		renew(&d, true);
	if (op[_i % 3] == S)
		b_recv(&d, 5, BIG, BIG);
	b_fill(&d, 0, BIG, 3);
	node_fill(&d.a, 0, BIG, 3);
	kill(d.pid, SIGSTOP);
	ck_assert_int_eq(waitpid(d.pid, NULL, WUNTRACED), d.pid);
	start = now_ms();
	ck_ok(post(&d, op[_i % 3], 5, 0, BIG, _i % 3 == 1 ? 0 : BIG, 0));
	ck_assert(now_ms() - start < 5000);
	ck_ok(post(&other, W, 6, 0, BIG, BIG, 0));
	expect_ok(other.a.scq, 6, IBV_WC_RDMA_WRITE);
	/* destruction does not wait for the stopped process, either */
	duo_close(&other);
	if (!comes_back) {
		expect(d.a.scq, 5, IBV_WC_RETRY_EXC_ERR);
		kill(d.pid, SIGCONT);
		/* a message that was given up is not copied later */
		if (_i % 3 == 0)
			ck_assert(!b_has(&d, BIG, BIG, 3));
		renew(&d, false);
	} else {
		expect_none(d.a.scq, 50);
		kill(d.pid, SIGCONT);
		expect_ok(d.a.scq, 5, wc[_i % 3]);
		ck_assert(b_has(&d, _i % 3 == 1 ? 0 : BIG, BIG, 3));
		if (op[_i % 3] == S)
			ck_assert_uint_eq(b_wait_recv(&d).status,
					  IBV_WC_SUCCESS);
	}
	exchange(&d, 5);
	duo_close(&d);
}
END_TEST

static void stop_b(struct duo *d)
{
	kill(d->pid, SIGSTOP);
	ck_assert_int_eq(waitpid(d->pid, NULL, WUNTRACED), d->pid);
}

/*
 * The peer is stopped before the first SEND, when the requester does not know
 * yet that it needs the peer's bouncer.  The SEND consumes no receive.
 */
START_TEST(stopped_before_the_first_send)
{
	struct opts o = default_opts();
	struct duo d;

	may_leak();
	o.timeout = _i ? 20 : 14; /* 4.3 s, 67 ms */
	o.retry_cnt = _i ? 7 : 2;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	b_recv(&d, 5, 0, BIG);
	node_fill(&d.a, 0, BIG, 3);
	stop_b(&d);
	ck_ok(post(&d, S, 5, 0, BIG, 0, 0));
	if (!_i) {
		expect(d.a.scq, 5, IBV_WC_RETRY_EXC_ERR);
		kill(d.pid, SIGCONT);
		renew(&d, false);
	} else {
		expect_none(d.a.scq, 50);
		kill(d.pid, SIGCONT);
		expect_ok(d.a.scq, 5, IBV_WC_SEND);
		ck_assert_uint_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
		ck_assert(b_has(&d, 0, BIG, 3));
	}
	exchange(&d, 5);
	duo_close(&d);
}
END_TEST

static int on_b_returned[2]; /* a pipe */

static void *recv_and_stop(void *b)
{
	char byte;

	ck_assert_int_eq(read(on_b_returned[0], &byte, 1), 1);
	ck_ok(post_recv(b, 5, 0, BIG));
	raise(SIGSTOP);
	return NULL;
}

static void do_recv_and_stop(struct node *b, void *arg)
{
	pthread_t thread;

	(void)arg;
	ck_ok(pthread_create(&thread, NULL, recv_and_stop, b));
	pthread_detach(thread);
}

/*
 * The service thread waits for the answer of a stopped peer's bouncer.  Verbs
 * calls do not wait for the service thread.
 */
START_TEST(stopped_during_timer_retry)
{
	struct opts o = default_opts();
	struct ibv_cq *cq;
	struct duo d;

	may_leak();
	o.timeout = 20;
	o.retry_cnt = 7;
	o.rnr_retry = 7;
	ck_ok(pipe(on_b_returned));
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	if (_i)
		exchange(&d, 1);
	node_fill(&d.a, 0, BIG, 3);
	ck_ok(post(&d, S, 5, 0, BIG, 0, 0)); /* RNR */
	on_b(&d, do_recv_and_stop, NULL, 0);
	ck_assert_int_eq(write(on_b_returned[1], "", 1), 1);
	ck_assert_int_eq(waitpid(d.pid, NULL, WUNTRACED), d.pid);
	cq = ibv_create_cq(d.a.ctx, 1, NULL, NULL, 0);
	ck_nonnull(cq);
	ck_ok(ibv_destroy_cq(cq));
	kill(d.pid, SIGCONT);
	expect_ok(d.a.scq, 5, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 0, BIG, 3));
	duo_close(&d);
	close(on_b_returned[0]);
	close(on_b_returned[1]);
}
END_TEST

#define HUGE (64 << 20)

/* Return whether a thread of @pid is in the system call that copies. */
static bool is_copying(pid_t pid)
{
	char path[64], nr[16];
	bool found = false;
	struct dirent *e;
	DIR *tasks;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	ck_nonnull(tasks);
	while (!found && (e = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.10s/syscall",
			 (int)pid, e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		memset(nr, 0, sizeof(nr));
		found = fd >= 0 && read(fd, nr, sizeof(nr) - 1) > 0 &&
			atoi(nr) == SYS_preadv;
		if (fd >= 0)
			close(fd);
	}
	closedir(tasks);
	return found;
}

#define COPIES 100

struct stopper {
	pid_t pid;
	int us;
};

static int stop_later(void *arg)
{
	struct stopper *s = arg;

	usleep(s->us);
	return kill(s->pid, SIGSTOP);
}

/* Post a message of HUGE bytes, and stop b while it is copied. */
static void post_and_stop(struct duo *d, enum ibv_wr_opcode op, int us)
{
	struct stopper s = { .pid = d->pid, .us = us };
	pid_t pid = spawn(stop_later, &s);

	ck_ok(post(d, op, 5, 0, HUGE, 0, 0));
	ck_ok(reap_child(pid));
}

/*
 * A message is repeated if the peer was stopped during the copy and continued
 * in time.
 */
START_TEST(stopped_during_copy)
{
	static const enum ibv_wr_opcode op[] = { W, R, S };
	struct opts o = default_opts();
	struct duo d;

	may_leak();
	o.size = HUGE;
	o.timeout = 20;
	o.retry_cnt = 7;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	node_fill(&d.a, 0, BIG, 3);
	b_fill(&d, 0, BIG, 3);
	if (op[_i % 3] == S)
		b_recv(&d, 5, 0, HUGE);
	post_and_stop(&d, op[_i % 3], 2000 + _i * 777);
	kill(d.pid, SIGCONT);
	ck_assert_uint_eq(expect(d.a.scq, 5, IBV_WC_SUCCESS).wr_id, 5);
	if (op[_i % 3] == S)
		ck_assert_uint_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 0, BIG, 3));
	exchange(&d, 5);
	duo_close(&d);
}
END_TEST

/*
 * Stop b while it copies a SEND, and continue it when the WR has ended.  If b
 * was stopped too late and has received the message, repeat with another time.
 * Return the status of the WR that b did not receive.
 */
static enum ibv_wc_status stop_past_timeout(struct duo *d)
{
	bool received = true, copying;
	struct ibv_wc wc, recv;
	int i;

	for (i = 0; received; i++) {
		b_recv(d, 5, 0, HUGE);
		post_and_stop(d, S, i ? 200 * i : 3000);
		copying = is_copying(d->pid);
		wc = wait_wc(d->a.scq);
		kill(d->pid, SIGCONT);
		received = b_try_recv(d, &recv);
		ck_assert(!received || (!copying && i < COPIES));
	}
	return wc.status;
}

/*
 * Send until b has received a message.  UC: messages are lost until b's
 * bouncer has noticed that it was continued.
 */
static void send_until_received(struct duo *d)
{
	double end = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	do {
		ck_assert(now_ms() < end);
		ck_ok(post(d, S, 6, 0, BIG, 0, 0));
		expect_ok(d->a.scq, 6, IBV_WC_SEND);
	} while (!b_try_recv(d, &wc));
	ck_assert_uint_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert(b_has(d, 0, BIG, 4));
}

/*
 * The peer is stopped during the copy, and not continued in time.  RC: the WR
 * ends with IBV_WC_RETRY_EXC_ERR. UC: the message is lost.  The receiver's QP
 * stays in RTS, and a UC receive is used for a later message.
 */
START_TEST(stopped_past_timeout)
{
	struct opts o = default_opts();
	struct duo d;

	may_leak();
	o.size = HUGE;
	o.timeout = 14; /* 67 ms */
	o.retry_cnt = 2;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	if (_i)
		turn(&d, IBV_QPT_UC);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	node_fill(&d.a, 0, BIG, 3);
	ck_assert_int_eq(stop_past_timeout(&d),
			 _i ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	if (_i) {
		node_fill(&d.a, 0, BIG, 4);
		send_until_received(&d);
	} else {
		renew(&d, false);
		exchange(&d, 5);
	}
	duo_close(&d);
}
END_TEST

/*
 * All processes are paused for longer than a requester waits for a stopped
 * process, as in a virtual machine.  When it continues it does not count the
 * pause, so no UC message is lost.
 */
START_TEST(pause_of_all)
{
	struct opts o = default_opts();
	struct duo d;
	pid_t pauser;

	may_leak();
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UC);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	node_fill(&d.a, 0, BIG, 3);
	stop_b(&d);
	pauser = spawn(pause_parent, &d.pid);
	ck_ok(post(&d, W, 5, 0, BIG, BIG, 0));
	expect_ok(d.a.scq, 5, IBV_WC_RDMA_WRITE);
	ck_ok(reap_child(pauser));
	ck_assert(b_has(&d, BIG, BIG, 3));
	duo_close(&d);
}
END_TEST

/*
 * A second QP of b, with one receive, and a memory window that is bound
 * through it
 */
struct second {
	struct addr a, b;
	uint32_t rkey;
};

static struct ibv_qp *first_qp; /* of b */
static struct ibv_mw *window;

static void do_second(struct node *b, void *arg)
{
	struct second *s = arg;
	struct ibv_send_wr wr = { .wr_id = 7,
				  .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED };

	first_qp = b->qp;
	b->qp = make_qp(b, IBV_QPT_RC, NULL);
	type_connect(b->qp, &b->o, &s->a);
	s->b = node_addr(b);
	ck_ok(post_recv(b, 6, 0, 16));
	window = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
	ck_nonnull(window);
	s->rkey = ibv_inc_rkey(window->rkey);
	wr.bind_mw.mw = window;
	wr.bind_mw.rkey = s->rkey;
	wr.bind_mw.bind_info.mr = b->mr;
	wr.bind_mw.bind_info.addr = b->base;
	wr.bind_mw.bind_info.length = 100;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	ck_ok(post_wr(b->qp, &wr));
	expect_ok(b->scq, 7, IBV_WC_BIND_MW);
}

static void do_invalidated(struct node *b, void *arg)
{
	struct ibv_wc wc = wait_wc(b->rcq);

	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 6);
	ck_assert_uint_eq(wc.invalidated_rkey, *(uint32_t *)arg);
	ck_ok(ibv_dealloc_mw(window));
	ck_ok(ibv_destroy_qp(first_qp));
}

static void stop_in_a_copy(struct duo *d)
{
	int i;

	post_and_stop(d, W, 3000);
	for (i = 0; !is_copying(d->pid) && i < COPIES; i++) {
		kill(d->pid, SIGCONT);
		expect_ok(d->a.scq, 5, IBV_WC_RDMA_WRITE);
		post_and_stop(d, W, 500 * i);
	}
}

static int continue_later(void *arg)
{
	sleep_ms(WAIT_MS);
	return kill(*(pid_t *)arg, SIGCONT);
}

/*
 * A bouncer that is stopped in a copy does not block ibv_post_send of a SEND
 * that invalidates a memory window.
 */
START_TEST(stopped_with_memory_window)
{
	struct ibv_qp *second, *first;
	struct opts o = default_opts();
	struct ibv_send_wr wr = { .wr_id = 6,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_INV,
				  .send_flags = IBV_SEND_SIGNALED };
	struct second s = { 0 };
	struct ibv_sge sge;
	struct ibv_wc wc;
	pid_t later;
	struct duo d;
	int i;

	may_leak();
	o.size = HUGE;
	o.timeout = 20;
	o.retry_cnt = 7;
	o.mr_access |= IBV_ACCESS_MW_BIND;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	first = d.a.qp;
	second = d.a.qp = make_qp(&d.a, IBV_QPT_RC, NULL);
	s.a = node_addr(&d.a);
	d.a.qp = first;
	on_b(&d, do_second, &s, sizeof(s));
	type_connect(second, &o, &s.b);
	stop_in_a_copy(&d);
	later = spawn(continue_later, &d.pid);
	sge = node_sge(&d.a, 0, 16);
	wr.sg_list = &sge;
	wr.invalidate_rkey = s.rkey;
	ck_ok(post_wr(second, &wr));
	/* the post returned while b was stopped */
	ck_assert_int_eq(waitpid(later, NULL, WNOHANG), 0);
	kill(later, SIGKILL);
	reap_child(later);
	kill(d.pid, SIGCONT);
	for (i = 0; i < 2; i++) {
		wc = wait_wc(d.a.scq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	}
	on_b(&d, do_invalidated, &s.rkey, sizeof(s.rkey));
	ck_ok(ibv_destroy_qp(second));
	duo_close(&d);
}
END_TEST

/* Replace b's QP by one that uses an SRQ, and post one receive to the SRQ. */
static void do_turn_to_srq(struct node *b, void *arg)
{
	struct ibv_srq *srq = make_srq(b, 4, 1);

	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = make_qp(b, IBV_QPT_RC, srq);
	ck_ok(post_srq(srq, b, 5, 0, HUGE));
	b->user = srq;
	*(struct addr *)arg = node_addr(b);
}

static void *await_recv(void *arg)
{
	struct node *b = arg;

	expect_ok(b->rcq, 5, IBV_WC_RECV);
	return NULL;
}

static pthread_t waiter; /* a thread of b */

static void do_await_recv(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(pthread_create(&waiter, NULL, await_recv, b));
}

static void do_received(struct node *b, void *arg)
{
	(void)b;
	(void)arg;
	ck_ok(pthread_join(waiter, NULL));
}

static int stop_for_a_while(void *arg)
{
	const struct stopper *s = arg;

	stop_later(arg);
	sleep_ms(600 + s->us / 20);
	return kill(s->pid, SIGCONT);
}

static void do_turn_back(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_destroy_qp(b->qp));
	ck_ok(ibv_destroy_srq(b->user));
	node_make_qp(b);
}

/*
 * A stopped peer returns the receive to its SRQ late.  Although the SRQ is
 * empty meanwhile, the requester does not get an RNR NAK.
 */
START_TEST(stopped_with_an_srq)
{
	struct stopper s = { .us = 2000 + _i * 777 };
	struct opts o = default_opts();
	struct duo d;
	pid_t pid;

	may_leak();
	o.size = HUGE;
	o.timeout = 16; /* 268 ms, eight times */
	o.retry_cnt = 7;
	o.rnr_retry = 0;
	duo_open_unconnected(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, do_turn_to_srq, &d.at_b, sizeof(d.at_b));
	duo_connect(&d);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	node_fill(&d.a, 0, BIG, 3);
	on_b(&d, do_await_recv, NULL, 0);
	s.pid = d.pid;
	pid = spawn(stop_for_a_while, &s);
	ck_ok(post(&d, S, 5, 0, HUGE, 0, 0));
	expect_ok(d.a.scq, 5, IBV_WC_SEND);
	on_b(&d, do_received, NULL, 0);
	ck_ok(reap_child(pid));
	ck_assert(b_has(&d, 0, BIG, 3));
	on_b(&d, do_turn_back, NULL, 0);
	duo_close(&d);
}
END_TEST

#define DATAGRAM 2048
#define RECVS 32
#define STOPS 8

/* b's thread that receives datagrams */
static struct {
	pthread_t thread;
	_Atomic bool drains; /* it posts no more receives */
	uint32_t got;
} ud_receiver;

static void check_receive(struct node *b, const struct ibv_wc *wc)
{
	ck_assert_uint_eq(wc->status, IBV_WC_SUCCESS);
	ck_assert(node_has(b, wc->wr_id * 2 * DATAGRAM + GRH, DATAGRAM, 3));
}

static void post_again(struct node *b, uint64_t i)
{
	node_fill(b, i * 2 * DATAGRAM, 2 * DATAGRAM, 4);
	ck_ok(post_recv(b, i, i * 2 * DATAGRAM, 2 * DATAGRAM));
}

/*
 * Post each receive again when it completes.  When draining, only count them.
 */
static void *receive_all(void *arg)
{
	unsigned int polls = 0;
	struct node *b = arg;
	struct ibv_wc wc;

	while (ud_receiver.got < RECVS) {
		if (!ibv_poll_cq(b->rcq, 1, &wc)) {
			breathe(&polls);
			continue;
		}
		check_receive(b, &wc);
		if (ud_receiver.drains)
			ud_receiver.got++;
		else
			post_again(b, wc.wr_id);
	}
	return NULL;
}

static void do_receive(struct node *b, void *arg)
{
	uint64_t i;

	(void)arg;
	for (i = 0; i < RECVS; i++)
		post_again(b, i);
	ck_ok(pthread_create(&ud_receiver.thread, NULL, receive_all, b));
}

static void do_drain(struct node *b, void *arg)
{
	(void)b;
	(void)arg;
	ud_receiver.drains = true;
}

/* Set *arg to whether all receives have completed. */
static void do_is_drained(struct node *b, void *arg)
{
	bool *over = arg;

	(void)b;
	*over = !pthread_tryjoin_np(ud_receiver.thread, NULL);
}

static void send_datagram(struct duo *d, struct ibv_ah *ah)
{
	ck_ok(post_ud(&d->a, 5, 0, DATAGRAM, ah, d->at_b.qpn, QKEY));
	expect_ok(d->a.scq, 5, IBV_WC_SEND);
}

/*
 * Send datagrams until b is stopped, and then one more.  Continue b only when
 * that one has completed, so b is stopped longer than the sender waits.
 */
static void send_while_stopped(struct duo *d, struct ibv_ah *ah, int us)
{
	struct stopper s = { .pid = d->pid, .us = us };
	pid_t pid = spawn(stop_later, &s);

	while (waitpid(pid, NULL, WNOHANG) != pid)
		send_datagram(d, ah);
	send_datagram(d, ah);
	kill(d->pid, SIGCONT);
}

/*
 * The receiver of datagrams is stopped during or between copies.  Datagrams
 * get lost, but the receiver's QP stays in RTS and each of its receives
 * completes.
 */
START_TEST(stopped_ud_receiver)
{
	struct opts o = default_opts();
	bool over = false;
	struct ibv_ah *ah;
	struct duo d;
	double start;
	int i;

	may_leak();
	o.size = 2 * DATAGRAM * RECVS;
	duo_open_unconnected(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UD);
	ah = make_ah(&d.a, &d.at_b.gid, 0);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	node_fill(&d.a, 0, DATAGRAM, 3);
	on_b(&d, do_receive, NULL, 0);
	for (i = 0; i < STOPS; i++)
		send_while_stopped(&d, ah, 3000 + i * 777);
	on_b(&d, do_drain, NULL, 0);
	for (start = now_ms(); !over;) {
		ck_assert(now_ms() - start < WAIT_MS);
		send_datagram(&d, ah);
		on_b(&d, do_is_drained, &over, sizeof(over));
	}
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("stopped_target");

	add_loop(s, peer_stopped, 6);
	add_loop(s, stopped_before_the_first_send, 2);
	add_loop(s, stopped_during_timer_retry, 2);
	add_loop(s, stopped_during_copy, 6);
	add(s, stopped_with_memory_window);
	add_loop(s, stopped_past_timeout, 2);
	add(s, pause_of_all);
	add_loop(s, stopped_with_an_srq, 6);
	add(s, stopped_ud_receiver);
	return run(s);
}
