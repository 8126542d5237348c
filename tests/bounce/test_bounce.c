// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bounce buffers: private memory that only its owning process can copy.  This
 * file has the cases that the other suites do not cover when they run without
 * process_vm_readv and process_vm_writev.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exchange.h"

static void do_forbid(struct node *b, void *arg)
{
	(void)b;
	ck_ok(forbid(*(int *)arg));
}

/*
 * Messages arrive if process_vm_* is forbidden in one process or in both,
 * from the start or after messages were exchanged.
 */
START_TEST(process_vm_forbidden)
{
	int what = FORBID_READ | FORBID_WRITE;
	struct opts o = default_opts();
	bool late = _i / 3;
	struct duo d;

	duo_open_unconnected(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	if (late) {
		duo_connect(&d);
		exchange(&d, 1);
	}
	if (_i % 3 != 1)
		ck_ok(forbid(what));
	if (_i % 3 != 0)
		on_b(&d, do_forbid, &what, sizeof(what));
	if (!late)
		duo_connect(&d);
	exchange(&d, 11);
	exchange(&d, 22);
	duo_close(&d);
}
END_TEST

/* ------------------------------------------------------- CPUs */

/*
 * Store the CPU with index @which of the affinity mask in @one.  Return false
 * if there is none.
 */
static bool one_cpu(int which, cpu_set_t *one)
{
	cpu_set_t may;
	int cpu;

	ck_ok(sched_getaffinity(0, sizeof(may), &may));
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &may) || which--)
			continue;
		CPU_ZERO(one);
		CPU_SET(cpu, one);
		return true;
	}
	return false;
}

/* Pin this thread, and threads and children that it creates, to one CPU. */
static void use_one_cpu(void)
{
	cpu_set_t one;

	ck_assert(one_cpu(0, &one));
	ck_ok(sched_setaffinity(0, sizeof(one), &one));
}

/*
 * Pin all threads of @pid to @cpu if @pin.  Return how many are pinned to it.
 */
static int threads_on(pid_t pid, const cpu_set_t *cpu, bool pin)
{
	char path[64];
	struct dirent *e;
	cpu_set_t is;
	int n = 0;
	pid_t tid;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	ck_nonnull(dir);
	while ((e = readdir(dir))) {
		tid = atoi(e->d_name);
		if (!tid)
			continue;
		if (pin)
			ck_ok(sched_setaffinity(tid, sizeof(*cpu), cpu));
		ck_ok(sched_getaffinity(tid, sizeof(is), &is));
		n += CPU_EQUAL(&is, cpu);
	}
	closedir(dir);
	return n;
}

static void *spin(void *arg)
{
	(void)arg;
	for (;;)
		__asm__ volatile("");
	return NULL;
}

static void start_spinning(void)
{
	pthread_t thread;

	ck_ok(pthread_create(&thread, NULL, spin, NULL));
	pthread_detach(thread);
}

static void do_spin(struct node *b, void *arg)
{
	(void)b;
	(void)arg;
	start_spinning();
}

/*
 * If the responder's program keeps its CPU busy, its bouncer thread moves to
 * the CPU of the waiting requester.
 */
START_TEST(bouncer_follows_requester_cpu)
{
	struct opts o = default_opts();
	cpu_set_t here, there;
	struct duo d;
	double start;

	if (!one_cpu(0, &here) || !one_cpu(1, &there))
		return;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	threads_on(d.pid, &there, true);
	ck_ok(sched_setaffinity(0, sizeof(here), &here));
	on_b(&d, do_spin, NULL, 0);
	for (start = now_ms(); !threads_on(d.pid, &here, false);) {
		ck_assert(now_ms() - start < WAIT_MS);
		exchange(&d, 1);
	}
	exchange(&d, 2);
	duo_close(&d);
}
END_TEST

#define HOLE (100 << 10)
#define BEHIND (128 << 10)

static void do_unmap(struct node *b, void *arg)
{
	(void)arg;
	leave_hole((char *)b->buf + HOLE, 4096);
}

/*
 * A message is copied in pieces, several of which are outstanding.  If one
 * fails, later pieces are not copied.
 */
START_TEST(no_copy_after_failed_piece)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	/* on one CPU all pieces are queued before the first is copied */
	use_one_cpu();
	may_leak();
	o.size = 2 * BEHIND;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	for (i = 0; i < 10; i++)
		exchange(&d, i);
	b_fill(&d, BEHIND, BEHIND, 7);
	on_b(&d, do_unmap, NULL, 0);
	ck_ok(post(&d, W, 1, 0, 2 * BEHIND, 0, 0));
	expect(d.a.scq, 1, IBV_WC_REM_OP_ERR);
	ck_assert(b_has(&d, BEHIND, BEHIND, 7));
	duo_close(&d);
}
END_TEST

/* ------------------------------------------------------- no memory */

static void do_no_memory(struct node *b, void *arg)
{
	(void)b;
	(void)arg;
	ck_ok(no_memory());
}

/*
 * If no memory is left for the bounce buffers, messages fail with
 * IBV_WC_RETRY_EXC_ERR and no process hangs.
 */
START_TEST(no_memory_for_bounce_ring)
{
	struct opts o = default_opts();
	struct duo d;

	o.timeout = 14;
	o.retry_cnt = 2;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	on_b(&d, do_no_memory, NULL, 0);
	b_recv(&d, 1, 0, BIG);
	ck_ok(post(&d, _i ? W : S, 1, 0, BIG, BIG, 0));
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	duo_close(&d);
}
END_TEST

/* ------------------------------------------------------- no thread */

/*
 * ibv_reg_mr fails with EAGAIN if the bouncer thread cannot be created: peers
 * could not access the memory.
 */
START_TEST(reg_mr_without_thread)
{
	static char buf[4096];
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	allow_threads(false);
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	ck_nonnull(pd);
	ck_errno(ibv_reg_mr(pd, buf, sizeof(buf), 0), EAGAIN);
	allow_threads(true);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* ------------------------------------------------------- killed */

#define WRITERS 12 /* more than there are slots */
#define BLOCK 4096

struct member {
	int sock;
	uint32_t block; /* bytes of each message */
	bool slow; /* begin when told, next to busy threads on one CPU */
	struct addr peer; /* the member's node, for the parent */
};

static void swap_addr(int sock, struct node *n, struct addr *peer)
{
	struct addr mine = node_addr(n);

	ck_assert_int_eq(write(sock, &mine, sizeof(mine)), sizeof(mine));
	ck_assert_int_eq(read(sock, peer, sizeof(*peer)), sizeof(*peer));
}

static void await_byte(int sock)
{
	char byte;

	ck_assert(fd_readable(sock, WAIT_MS));
	ck_assert_int_eq(read(sock, &byte, 1), 1);
}

static enum ibv_wc_status write_block(struct node *n, const struct addr *peer,
				      uint32_t len)
{
	struct ibv_sge sge = node_sge(n, 0, len);
	struct ibv_send_wr wr = {
		.opcode = W,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = peer->base, .rkey = peer->rkey },
	};

	ck_ok(post_wr(n->qp, &wr));
	return wait_wc(n->scq).status;
}

/*
 * Write blocks until this process is killed.  All bytes of a block are the
 * same.
 */
static int writer(void *arg)
{
	struct member *m = arg;
	struct opts o = default_opts();
	struct addr peer;
	struct node n;
	int i;

	leave_check();
	ck_ok(forbid(FORBID_READ | FORBID_WRITE));
	if (o.size < m->block)
		o.size = m->block;
	node_open(&n, NULL, MEM_HEAP, &o);
	swap_addr(m->sock, &n, &peer);
	node_connect(&n, &peer);
	if (m->slow) {
		await_byte(m->sock);
		use_one_cpu();
		start_spinning();
		start_spinning();
	}
	for (i = 1;; i++) {
		memset(n.buf, i & 0xff, m->block);
		if (write_block(&n, &peer, m->block) != IBV_WC_SUCCESS)
			return 1;
		if (i == 20)
			ck_assert_int_eq(write(m->sock, "", 1), 1);
	}
}

static pid_t start_member(int (*fn)(void *), struct node *n, struct member *m,
			  int sock[2])
{
	pid_t pid;

	ck_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	m->sock = sock[1];
	pid = spawn(fn, m);
	close(sock[1]);
	swap_addr(sock[0], n, &m->peer);
	node_connect(n, &m->peer);
	return pid;
}

static void end_writer(pid_t pid, int sock)
{
	kill(pid, SIGKILL);
	ck_assert_int_eq(reap_child(pid), -SIGKILL);
	close(sock);
}

/*
 * Writers are killed at arbitrary moments.  Each leaves its last block
 * complete, and the slots that they occupied can be used by later writers.
 */
START_TEST(killed_writers)
{
	struct opts o = default_opts();
	struct member m[WRITERS];
	struct node n[WRITERS];
	int sock[WRITERS][2];
	pid_t pid[WRITERS];
	int i, round;

	may_leak();
	for (round = 0; round < 3; round++) {
		for (i = 0; i < WRITERS; i++) {
			node_open(&n[i], i ? n[0].ctx : NULL, MEM_HEAP, &o);
			m[i] = (struct member){ .block = BLOCK };
			pid[i] = start_member(writer, &n[i], &m[i], sock[i]);
		}
		for (i = 0; i < WRITERS; i++)
			await_byte(sock[i][0]);
		for (i = 0; i < WRITERS; i++) {
			usleep(777 * round);
			end_writer(pid[i], sock[i][0]);
		}
		for (i = WRITERS - 1; i >= 0; i--) {
			ck_ok(ibv_dereg_mr(n[i].mr));
			ck_assert(node_all(&n[i], 0, BLOCK,
					   *(uint8_t *)n[i].buf));
			n[i].mr = ibv_reg_mr(n[i].pd, n[i].buf, o.size,
					     ALL_ACCESS);
			ck_nonnull(n[i].mr);
			node_close(&n[i]);
		}
	}
}
END_TEST

#define HOGS 2 /* so many requesters can have all slots */

/* Kill the writers while the parent, whose bouncer they use, is stopped. */
static int kill_while_stopped(void *arg)
{
	const pid_t *pid = arg, parent = getppid();
	int i;

	kill(parent, SIGSTOP);
	usleep(100000); /* they post as many pieces as they may */
	for (i = 0; i < HOGS; i++)
		kill(pid[i], SIGKILL);
	kill(parent, SIGCONT);
	return 0;
}

/*
 * Killed writers have left all slots of an idle bouncer.  Another one takes a
 * slot over, also if each of its yields takes milliseconds, since other threads
 * use its CPU.
 */
START_TEST(slots_of_killed_writers)
{
	struct opts o = default_opts();
	struct member m[HOGS + 1];
	struct node n[HOGS + 1];
	int i, sock[HOGS + 1][2];
	pid_t pid[HOGS + 1];

	may_leak();
	o.size = 1 << 18;
	for (i = 0; i <= HOGS; i++) {
		node_open(&n[i], i ? n[0].ctx : NULL, MEM_HEAP, &o);
		m[i].slow = i == HOGS;
		m[i].block = m[i].slow ? BLOCK : o.size;
		pid[i] = start_member(writer, &n[i], &m[i], sock[i]);
	}
	for (i = 0; i < HOGS; i++)
		await_byte(sock[i][0]);
	ck_assert_int_eq(reap_child(spawn(kill_while_stopped, pid)), 0);
	ck_assert_int_eq(write(sock[HOGS][0], "", 1), 1);
	await_byte(sock[HOGS][0]);
	for (i = 0; i <= HOGS; i++)
		end_writer(pid[i], sock[i][0]);
	while (i--)
		node_close(&n[i]);
}
END_TEST

/*
 * There are more writers than slots, on one CPU.  A writer that posts
 * continuously does not keep the other writers from getting a slot.
 */
START_TEST(many_writers_on_one_cpu)
{
	struct opts o = default_opts();
	struct member m[WRITERS];
	struct node n[WRITERS];
	int i, sock[WRITERS][2];
	pid_t pid[WRITERS];

	may_leak();
	use_one_cpu();
	for (i = 0; i < WRITERS; i++) {
		node_open(&n[i], i ? n[0].ctx : NULL, MEM_HEAP, &o);
		m[i] = (struct member){ .block = BLOCK };
		pid[i] = start_member(writer, &n[i], &m[i], sock[i]);
	}
	for (i = 0; i < WRITERS; i++)
		await_byte(sock[i][0]);
	for (i = 0; i < WRITERS; i++)
		end_writer(pid[i], sock[i][0]);
	for (i = WRITERS - 1; i >= 0; i--)
		node_close(&n[i]);
}
END_TEST

/*
 * After ibv_dereg_mr no byte of the memory changes, even if the writer was
 * killed.  Messages have one piece, or several outstanding pieces.
 */
START_TEST(dereg_after_kill)
{
	const uint32_t size = 1 << 18;
	struct member m = { .block = _i ? size : BLOCK };
	struct opts o = default_opts();
	struct node n;
	int sock[2], i, k;
	pid_t pid;

	o.size = size;
	node_open(&n, NULL, MEM_HEAP, &o);
	for (i = 0; i < 10; i++) {
		pid = start_member(writer, &n, &m, sock);
		await_byte(sock[0]);
		usleep(333 * i);
		kill(pid, SIGKILL);
		if (i % 2)
			ck_assert_int_eq(reap_child(pid), -SIGKILL);
		ck_ok(ibv_dereg_mr(n.mr));
		node_fill(&n, 0, size, i);
		for (k = 0; k < 50; k++) {
			ck_assert(node_has(&n, 0, size, i));
			sched_yield();
		}
		if (!(i % 2))
			ck_assert_int_eq(reap_child(pid), -SIGKILL);
		close(sock[0]);
		n.mr = ibv_reg_mr(n.pd, n.buf, o.size, ALL_ACCESS);
		ck_nonnull(n.mr);
		ck_ok(ibv_destroy_qp(n.qp));
		node_make_qp(&n);
	}
	node_close(&n);
}
END_TEST

/* ------------------------------------------------------- priority */

/* Poll the last byte of a block in memory until it is written. */
static int memory_poller(void *arg)
{
	struct member *m = arg;
	struct opts o = default_opts();
	struct addr peer;
	cpu_set_t there;
	struct node n;

	leave_check();
	ck_assert(one_cpu(1, &there));
	ck_ok(sched_setaffinity(0, sizeof(there), &there));
	node_open(&n, NULL, MEM_HEAP, &o);
	memset(n.buf, 0, BLOCK);
	swap_addr(m->sock, &n, &peer);
	node_connect(&n, &peer);
	alarm(WAIT_MS / 1000);
	while (!((volatile uint8_t *)n.buf)[BLOCK - 1])
		;
	return 0;
}

/*
 * A program with real-time priority that polls its memory does not keep the
 * bouncer thread from its CPU: that has a higher priority.
 */
START_TEST(target_with_priority)
{
	struct sched_param high = { .sched_priority = 1 }, normal = { 0 };
	struct opts o = default_opts();
	struct member m = { 0 };
	cpu_set_t there;
	struct node n;
	int sock[2];
	pid_t pid;

	if (!one_cpu(1, &there))
		return;
	node_open(&n, NULL, MEM_HEAP, &o);
	memset(n.buf, 1, BLOCK);
	if (sched_setscheduler(0, SCHED_FIFO, &high))
		pid = 0; /* this needs CAP_SYS_NICE */
	else
		pid = start_member(memory_poller, &n, &m, sock);
	ck_ok(sched_setscheduler(0, SCHED_OTHER, &normal));
	if (pid) {
		ck_ok(forbid(FORBID_READ | FORBID_WRITE));
		ck_assert_int_eq(write_block(&n, &m.peer, BLOCK),
				 IBV_WC_SUCCESS);
		ck_ok(reap_child(pid));
		close(sock[0]);
	}
	node_close(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite("bounce");

	add_loop(s, process_vm_forbidden, 6);
	add(s, bouncer_follows_requester_cpu);
	add(s, no_copy_after_failed_piece);
	add(s, reg_mr_without_thread);
	add_loop(s, no_memory_for_bounce_ring, 2);
	add(s, killed_writers);
	add(s, slots_of_killed_writers);
	add(s, many_writers_on_one_cpu);
	add_loop(s, dereg_after_kill, 2);
	add(s, target_with_priority);
	return run(s);
}
