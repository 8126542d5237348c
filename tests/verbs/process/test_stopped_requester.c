// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A requester that is stopped while it executes a WR (Ctrl-Z, a debugger)
 * delays only destroyers of the objects that it uses, and they sleep
 * meanwhile.  The protocol is described in shared/guard.h.
 *
 * The requester ("poster") is traced by ptrace(2).  It stops at the entry of
 * the system call that copies: inside ibv_post_send, with its guard in use,
 * but in no other critical section.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../pause.h"
#include "../harness.h"

#define LONG 65536 /* bytes of an RDMA request */

struct op {
	enum ibv_wr_opcode opcode;
	int syscall;
	uint32_t length;
	bool receives;
};

static const struct op ops[] = {
	{ IBV_WR_RDMA_WRITE, SYS_process_vm_writev, LONG, false },
	{ IBV_WR_RDMA_READ, SYS_process_vm_readv, LONG, false },
	{ IBV_WR_SEND, SYS_process_vm_writev, 500, true },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, SYS_process_vm_writev, LONG, true },
};
#define OPS (int)(sizeof(ops) / sizeof(*ops))

/*
 * An atomic by process_vm_readv and process_vm_writev; stopped between them.
 */
static const struct op atomic = { IBV_WR_ATOMIC_FETCH_AND_ADD,
				  SYS_process_vm_writev, 8, false };

/*
 * The responder, a node of this process, and a requester that is stopped
 * while it uses the responder's memory.
 */
struct stopped {
	const struct op *op;
	struct node n;
	int sock;
	pid_t pid;
	bool has_child; /* a forked child keeps the poster's context open */
	struct ibv_srq *srq;
};

static int poster(void *arg)
{
	struct stopped *s = arg;
	struct opts o = default_opts();
	struct ibv_send_wr wr = { .wr_id = 1, .num_sge = 1 };
	struct addr mine, peer;
	struct ibv_sge sge;
	struct node n;
	char go;

	leave_check();
	o.size = 2 * LONG;
	node_open(&n, NULL, MEM_HEAP, &o);
	mine = node_addr(&n);
	if (write(s->sock, &mine, sizeof(mine)) != sizeof(mine) ||
	    read(s->sock, &peer, sizeof(peer)) != sizeof(peer))
		return 1;
	node_connect(&n, &peer);
	if (s->has_child && !fork()) {
		/* exits when the test closes its socket */
		poll(&(struct pollfd){ .fd = s->sock }, 1, -1);
		_exit(0);
	}
	if (write(s->sock, "", 1) != 1 || read(s->sock, &go, 1) != 1)
		return 1;
	sge = node_sge(&n, 0, s->op->length);
	wr.opcode = s->op->opcode;
	wr.sg_list = &sge;
	wr.send_flags = IBV_SEND_SIGNALED;
	if (s->op == &atomic) {
		wr.wr.atomic.remote_addr = peer.base;
		wr.wr.atomic.rkey = peer.rkey;
		wr.wr.atomic.compare_add = 1000;
	} else {
		wr.wr.rdma.remote_addr = peer.base;
		wr.wr.rdma.rkey = peer.rkey;
	}
	ck_ok(post_wr(n.qp, &wr));
	expect(n.scq, 1, IBV_WC_SUCCESS);
	if (write(s->sock, "", 1) != 1)
		return 1;
	pause();
	return 0;
}

/* Resume @pid by a ptrace @request until its next stop. */
static bool trace_step(pid_t pid, int request, int *status)
{
	return !ptrace(request, pid, 0, 0) && waitpid(pid, status, 0) == pid &&
	       WIFSTOPPED(*status);
}

/* Resume the poster until it enters the system call of its operation. */
static void trace_to(const struct stopped *s)
{
	struct __ptrace_syscall_info info;
	int status;

	do {
		ck_assert(trace_step(s->pid, PTRACE_SYSCALL, &status));
		memset(&info, 0, sizeof(info));
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			ck_assert_int_gt(ptrace(PTRACE_GET_SYSCALL_INFO, s->pid,
						sizeof(info), &info),
					 0);
	} while (info.op != PTRACE_SYSCALL_INFO_ENTRY ||
		 (int)info.entry.nr != s->op->syscall);
}

/* Replace the node's QP by a QP that uses an SRQ. */
static void use_srq(struct stopped *s)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8,
						    .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = s->n.o.cap,
					 .send_cq = s->n.scq,
					 .recv_cq = s->n.rcq };

	ck_ok(ibv_destroy_qp(s->n.qp));
	s->srq = init.srq = ibv_create_srq(s->n.pd, &attr);
	ck_nonnull(s->srq);
	s->n.qp = ibv_create_qp(s->n.pd, &init);
	ck_nonnull(s->n.qp);
}

static void post_receive(struct stopped *s)
{
	struct ibv_sge sge = node_sge(&s->n, 0, s->op->length);
	struct ibv_recv_wr wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (s->srq)
		ck_ok(ibv_post_srq_recv(s->srq, &wr, &bad));
	else if (s->op->receives)
		ck_ok(ibv_post_recv(s->n.qp, &wr, &bad));
}

/*
 * Fork a poster, connect to it, and stop it inside @op.  False: ptrace(2) is
 * not permitted.
 */
static bool stop(struct stopped *s, const struct op *op, bool has_child,
		 bool srq)
{
	struct opts o = default_opts();
	struct stopped child = { .op = op, .has_child = has_child };
	struct addr mine, peer;
	int sock[2], status;
	char go;

	ck_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	child.sock = sock[1];
	memset(s, 0, sizeof(*s));
	s->op = op;
	s->sock = sock[0];
	s->pid = spawn(poster, &child);
	close(sock[1]);
	o.size = 2 * LONG;
	node_open(&s->n, NULL, MEM_HEAP, &o);
	if (srq)
		use_srq(s);
	mine = node_addr(&s->n);
	ck_assert_int_eq(read(s->sock, &peer, sizeof(peer)), sizeof(peer));
	ck_assert_int_eq(write(s->sock, &mine, sizeof(mine)), sizeof(mine));
	node_connect(&s->n, &peer);
	post_receive(s);
	ck_assert_int_eq(read(s->sock, &go, 1), 1);
	if (ptrace(PTRACE_SEIZE, s->pid, 0,
		   PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) {
		fprintf(stderr, "skipped: ptrace: %s\n", strerror(errno));
		return false;
	}
	ck_assert(trace_step(s->pid, PTRACE_INTERRUPT, &status));
	ck_assert_int_eq(write(s->sock, "", 1), 1);
	trace_to(s);
	kill(s->pid, SIGSTOP); /* stops its other threads as well */
	return true;
}

static int just_pause(void *arg)
{
	(void)arg;
	leave_check();
	pause();
	return 0;
}

/* Resume the poster and wait until its WR has completed. */
static void go_on(struct stopped *s)
{
	char done;

	ck_ok(ptrace(PTRACE_DETACH, s->pid, 0, 0));
	kill(s->pid, SIGCONT);
	ck_assert_int_eq(read(s->sock, &done, 1), 1);
}

static void end(struct stopped *s)
{
	kill(s->pid, SIGKILL);
	ck_assert_int_eq(reap_child(s->pid), -SIGKILL);
	close(s->sock);
	node_close(&s->n);
}

/*
 * Create, use and destroy an object of each kind in @ctx; NULL: in a new
 * context.
 */
static void use_everything(struct ibv_context *ctx)
{
	struct opts o = default_opts();
	struct ibv_alloc_dm_attr dm_attr = { .length = 4096 };
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 8,
							.max_sge = 1 } };
	struct ibv_srq *srq;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct addr self;
	struct node n;

	node_open(&n, ctx, MEM_HEAP, &o);
	self = node_addr(&n);
	node_connect(&n, &self);
	ck_ok(post_recv(&n, 1, 0, 8));
	ck_ok(ibv_resize_cq(n.scq, 500));
	mw = ibv_alloc_mw(n.pd, IBV_MW_TYPE_1);
	ck_nonnull(mw);
	ck_ok(ibv_dealloc_mw(mw));
	srq = ibv_create_srq(n.pd, &srq_attr);
	ck_nonnull(srq);
	ck_ok(ibv_destroy_srq(srq));
	dm = ibv_alloc_dm(n.ctx, &dm_attr);
	ck_nonnull(dm);
	mr = ibv_reg_dm_mr(n.pd, dm, 0, 4096,
			   IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_free_dm(dm));
	ck_ok(qp_to(n.qp, IBV_QPS_ERR));
	expect(n.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	node_close(&n);
}

/* A stopped requester does not delay destroyers in other contexts. */
START_TEST(other_contexts_not_delayed)
{
	struct stopped s;

	if (!stop(&s, &ops[_i], false, false))
		return;
	use_everything(NULL);
	go_on(&s);
	end(&s);
}
END_TEST

/*
 * A stopped requester does not delay destroyers of objects of the responder's
 * context that it does not use.
 */
START_TEST(unused_objects_not_delayed)
{
	struct stopped s;

	if (!stop(&s, &ops[_i], false, false))
		return;
	use_everything(s.n.ctx);
	if (!ops[_i].receives)
		ck_ok(ibv_resize_cq(s.n.rcq, 500));
	go_on(&s);
	if (ops[_i].receives)
		expect(s.n.rcq, 9, IBV_WC_SUCCESS);
	end(&s);
}
END_TEST

struct destroyer {
	struct ibv_mr *mr;
	_Atomic bool done;
	clockid_t clock; /* its CPU time */
};

static void *take(void *arg)
{
	struct destroyer *t = arg;

	ck_ok(ibv_dereg_mr(t->mr));
	atomic_store(&t->done, true);
	return NULL;
}

/*
 * ibv_dereg_mr of the MR that the stopped requester uses waits, without using
 * CPU time, until the requester continues.
 */
START_TEST(dereg_of_used_mr_waits)
{
	struct timespec cpu;
	struct stopped s;
	struct destroyer t;
	pthread_t id;
	double start;

	if (!stop(&s, &ops[_i], false, false))
		return;
	t.mr = s.n.mr;
	atomic_init(&t.done, false);
	ck_ok(pthread_create(&id, NULL, take, &t));
	ck_ok(pthread_getcpuclockid(id, &t.clock));
	start = now_ms();
	while (now_ms() - start < 500)
		sleep_ms(10);
	ck_assert(!atomic_load(&t.done));
	ck_ok(clock_gettime(t.clock, &cpu));
	ck_assert_msg(!cpu.tv_sec && cpu.tv_nsec < 250000000,
		      "%ld ns of CPU time while it waited", cpu.tv_nsec);
	go_on(&s);
	ck_ok(pthread_join(id, NULL));
	s.n.mr = NULL;
	end(&s);
}
END_TEST

/*
 * Destroyers do not wait for a requester that was killed inside a WR, even if
 * its forked child keeps its context open.  _i >= OPS: the destroyer has no
 * file descriptor left (RLIMIT_NOFILE 0).
 */
START_TEST(killed_in_post_send)
{
	struct rlimit was, none;
	struct stopped s;

	if (!stop(&s, &ops[_i % OPS], true, false))
		return;
	ck_ok(kill(s.pid, SIGKILL));
	ck_assert_int_eq(reap_child(s.pid), -SIGKILL);
	ck_ok(getrlimit(RLIMIT_NOFILE, &was));
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = was.rlim_max };
	if (_i >= OPS)
		ck_ok(setrlimit(RLIMIT_NOFILE, &none));
	ck_ok(ibv_dereg_mr(s.n.mr));
	ck_ok(setrlimit(RLIMIT_NOFILE, &was));
	s.n.mr = NULL;
	ck_ok(ibv_destroy_qp(s.n.qp));
	s.n.qp = NULL;
	node_close(&s.n);
	close(s.sock); /* the child exits */
}
END_TEST

/*
 * ibv_poll_cq and ibv_modify_qp do not wait for a message in progress.  Its
 * receive completes when the requester continues, also if the QP has been
 * moved to ERR.  _i: 0 receive queue, 1 SRQ.
 */
START_TEST(poll_does_not_wait)
{
	struct ibv_wc wc;
	struct stopped s;

	if (!stop(&s, &ops[2], false, _i))
		return;
	ck_ok(qp_to(s.n.qp, IBV_QPS_ERR));
	ck_assert_int_eq(ibv_poll_cq(s.n.rcq, 1, &wc), 0);
	go_on(&s);
	expect(s.n.rcq, 9, IBV_WC_SUCCESS);
	if (_i) {
		expect_async(s.n.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, s.n.qp);
		ck_ok(ibv_destroy_qp(s.n.qp));
		s.n.qp = NULL;
		ck_ok(ibv_destroy_srq(s.srq));
	}
	end(&s);
}
END_TEST

/*
 * Add 1 to the word at n's base by a new QP of @n that is connected to
 * itself, and expect @status.
 */
static void add_one(struct node *n, enum ibv_wc_status status)
{
	struct ibv_sge sge = node_sge(n, 64, 8);
	struct ibv_send_wr wr = { .wr_id = 5,
				  .opcode = atomic.opcode,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED };
	struct addr self;

	node_make_qp(n);
	self = node_addr(n);
	node_connect(n, &self);
	wr.wr.atomic.remote_addr = n->base;
	wr.wr.atomic.rkey = n->mr->rkey;
	wr.wr.atomic.compare_add = 1;
	ck_ok(post_wr(n->qp, &wr));
	expect(n->scq, 5, status);
	ck_ok(ibv_destroy_qp(n->qp));
	n->qp = NULL;
}

/*
 * A requester that is stopped in an atomic does not delay atomics on other
 * words, not even at the same offset in another page.  An atomic on the same
 * word gets no response until the requester continues (_i = 1) or is dead.
 */
START_TEST(stopped_in_atomic)
{
	struct opts o = default_opts();
	struct node other, same;
	struct stopped s;

	if (!stop(&s, &atomic, false, false))
		return;
	node_open(&other, NULL, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(other.qp));
	ck_assert_uint_eq(other.base % 4096, s.n.base % 4096);
	add_one(&other, IBV_WC_SUCCESS);
	node_close(&other);

	same = s.n;
	same.o.timeout = 8; /* 1 ms */
	same.o.retry_cnt = 1;
	add_one(&same, IBV_WC_RETRY_EXC_ERR);
	add_one(&same, IBV_WC_RETRY_EXC_ERR);
	if (_i) {
		go_on(&s);
	} else {
		kill(s.pid, SIGKILL);
		ck_assert_int_eq(reap_child(s.pid), -SIGKILL);
		s.pid = spawn(just_pause, NULL); /* end() kills it */
	}
	same.o.timeout = 14;
	same.o.retry_cnt = 7;
	add_one(&same, IBV_WC_SUCCESS);
	ck_assert_uint_eq(*(uint64_t *)s.n.buf, _i ? 1001 : 1);
	end(&s);
}
END_TEST

/*
 * All processes are paused for longer than a requester waits for the lock of
 * a word, as in a virtual machine.  When it continues it does not count the
 * pause, and its atomic succeeds although its QP does not retry.
 */
START_TEST(pause_of_all)
{
	struct stopped s;
	struct node same;
	pid_t pauser;
	char done;

	if (!stop(&s, &atomic, false, false))
		return;
	/* stopped by a signal, so that a child can continue it */
	ck_ok(ptrace(PTRACE_DETACH, s.pid, 0, SIGSTOP));
	same = s.n;
	same.o.timeout = 8; /* 1 ms */
	same.o.retry_cnt = 0;
	pauser = spawn(pause_parent, &s.pid);
	add_one(&same, IBV_WC_SUCCESS);
	ck_assert_int_eq(reap_child(pauser), 0);
	ck_assert_int_eq(read(s.sock, &done, 1), 1);
	ck_assert_uint_eq(*(uint64_t *)s.n.buf, 1001);
	end(&s);
}
END_TEST

int main(void)
{
	Suite *s = suite("stopped_requester");

	unsetenv("URXE_ADOPT"); /* with adoption no system call copies */
	add_loop(s, other_contexts_not_delayed, OPS);
	add_loop(s, unused_objects_not_delayed, OPS);
	add_loop(s, dereg_of_used_mr_waits, OPS);
	add_loop(s, killed_in_post_send, 2 * OPS);
	add_loop(s, stopped_in_atomic, 2);
	add(s, pause_of_all);
	add_loop(s, poll_does_not_wait, 2); /* with an RQ, with an SRQ */
	return run(s);
}
