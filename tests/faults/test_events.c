// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fault injection: asynchronous events, port states and process faults */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "faults.h"

static struct duo d;
static unsigned int ioctl_delay_ms;

/* libibverbs calls this; it calls the function of the preload library. */
int ioctl(int fd, unsigned long request, ...)
{
	int (*next)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	usleep(ioctl_delay_ms * 1000);
	return next(fd, request, arg);
}

static void open_duo(const char *rules, enum where where)
{
	struct opts o = default_opts();

	fault(rules);
	duo_open(&d, where, MEM_HEAP, MEM_HEAP, &o);
}

/* Check the type of the next event, but not its element. */
static void expect_event(struct ibv_context *ctx, enum ibv_event_type type)
{
	ck_assert_int_eq(wait_async(ctx, true).event_type, type);
}

static void write_one(uint64_t wr_id)
{
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, wr_id, 0, 8, 0, 0));
	expect_ok(d.a.scq, wr_id, IBV_WC_RDMA_WRITE);
}

/*
 * A QP event occurs after the N-th posted or completed WR.  Fatal events move
 * the QP to ERR and flush it; the peer stays in RTS.
 */
START_TEST(qp_event_after_nth_post)
{
	static const struct {
		const char *rule;
		enum ibv_event_type event;
		bool breaks;
	} cases[] = {
		{ "qp:at=post:nth=2:QP_FATAL", IBV_EVENT_QP_FATAL, true },
		{ "qp:at=post:nth=2:QP_REQ_ERR", IBV_EVENT_QP_REQ_ERR, true },
		{ "qp:at=post:nth=2:QP_ACCESS_ERR", IBV_EVENT_QP_ACCESS_ERR,
		  true },
		{ "qp:at=post:nth=2:PATH_MIG", IBV_EVENT_PATH_MIG, false },
		{ "qp:nth=2:QP_FATAL", IBV_EVENT_QP_FATAL, true },
	};

	open_duo(cases[_i].rule, TWO_PROCESSES);
	ck_ok(post_recv(&d.a, 9, 0, 8));
	write_one(1);
	expect_quiet(d.a.ctx);
	write_one(2);
	expect_async(d.a.ctx, cases[_i].event, d.a.qp);
	if (cases[_i].breaks) {
		ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
		expect(d.a.rcq, 9, IBV_WC_WR_FLUSH_ERR);
		ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	} else {
		write_one(3);
	}
	expect_quiet(d.a.ctx);
	duo_close(&d);
}
END_TEST

/* A rule with at=recv strikes the QP for which receives are posted: b's. */
START_TEST(qp_event_at_recv)
{
	open_duo("qp:at=recv:nth=2:QP_FATAL", TWO_PROCESSES);
	b_recv(&d, 1, 0, 64);
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	b_recv(&d, 2, 0, 64);
	b_expect_async(&d, IBV_EVENT_QP_FATAL);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_WR_FLUSH_ERR);
	expect_quiet(d.a.ctx);
	duo_close(&d);
}
END_TEST

/* With ms=, the event occurs on each QP of the type. */
START_TEST(qp_event_after_ms)
{
	open_duo("qp:ms=40:type=RC:QP_FATAL", SAME_CONTEXT);
	expect_event(d.a.ctx, IBV_EVENT_QP_FATAL);
	expect_event(d.a.ctx, IBV_EVENT_QP_FATAL);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
	duo_close(&d);
}
END_TEST

/*
 * CQ_ERR occurs after the N-th CQE is polled, and there are no further CQEs.
 */
START_TEST(cq_err_event)
{
	open_duo("cq:nth=2:CQ_ERR", TWO_PROCESSES);
	write_one(1);
	expect_quiet(d.a.ctx);
	write_one(2);
	expect_async(d.a.ctx, IBV_EVENT_CQ_ERR, d.a.scq);
	/* a QP that needs a completion in this CQ breaks, too */
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 0, 8, 0, 0));
	expect_async(d.a.ctx, IBV_EVENT_QP_FATAL, d.a.qp);
	expect_none(d.a.scq, QUIET_MS);
	duo_close(&d);
}
END_TEST

/*
 * SRQ events occur after the N-th posted receive.  SRQ_LIMIT_REACHED disarms
 * the limit (ibv_modify_srq(3)).
 */
START_TEST(srq_events)
{
	static const struct {
		const char *rule;
		enum ibv_event_type event;
	} cases[] = {
		{ "srq:nth=2:SRQ_LIMIT_REACHED", IBV_EVENT_SRQ_LIMIT_REACHED },
		{ "srq:nth=2:SRQ_ERR", IBV_EVENT_SRQ_ERR },
	};
	struct ibv_srq_attr attr = { .srq_limit = 1 };
	struct opts o = default_opts();
	struct ibv_srq *srq;
	struct node n;

	fault(cases[_i].rule);
	node_open(&n, NULL, MEM_HEAP, &o);
	srq = make_srq(&n, 8, 1);
	ck_ok(post_srq(srq, &n, 1, 0, 8));
	ck_ok(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	expect_quiet(n.ctx);
	ck_ok(post_srq(srq, &n, 2, 0, 8));
	expect_async(n.ctx, cases[_i].event, srq);
	if (!_i) {
		ck_ok(ibv_query_srq(srq, &attr));
		ck_assert_uint_eq(attr.srq_limit, 0);
	}
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/* Events that do not change the state of an object */
START_TEST(events_without_state_change)
{
	static const struct {
		const char *rule;
		enum ibv_event_type event;
	} cases[] = {
		{ "qp:COMM_EST", IBV_EVENT_COMM_EST },
		{ "qp:PATH_MIG", IBV_EVENT_PATH_MIG },
		{ "qp:PATH_MIG_ERR", IBV_EVENT_PATH_MIG_ERR },
		{ "port:LID_CHANGE", IBV_EVENT_LID_CHANGE },
		{ "port:PKEY_CHANGE", IBV_EVENT_PKEY_CHANGE },
		{ "port:GID_CHANGE", IBV_EVENT_GID_CHANGE },
		{ "port:SM_CHANGE", IBV_EVENT_SM_CHANGE },
		{ "port:CLIENT_REREGISTER", IBV_EVENT_CLIENT_REREGISTER },
	};
	struct ibv_async_event e;
	int i;

	open_duo(cases[_i].rule, SAME_CONTEXT);
	for (i = 0; i < 2; i++) {
		write_one(i);
		e = wait_async(d.a.ctx, true);
		ck_assert_int_eq(e.event_type, cases[_i].event);
		if (_i < 3)
			ck_assert_ptr_eq(e.element.qp, d.a.qp);
		else
			ck_assert_int_eq(e.element.port_num, 1);
	}
	expect_quiet(d.a.ctx);
	duo_close(&d);
}
END_TEST

/* A rule with ms= strikes all objects that it matches, and no others. */
START_TEST(object_events_after_ms)
{
	struct opts o = default_opts();
	struct ibv_srq *srq;
	struct node n;
	int i, of_cq = 0, of_srq = 0;

	fault("cq:ms=150:CQ_ERR;srq:ms=150:SRQ_ERR;qp:ms=150:type=UD:QP_FATAL");
	node_open(&n, NULL, MEM_HEAP, &o); /* two CQs, and an RC QP */
	srq = make_srq(&n, 8, 1);
	for (i = 0; i < 3; i++)
		switch (wait_async(n.ctx, true).event_type) {
		case IBV_EVENT_CQ_ERR:
			of_cq++;
			break;
		default:
			of_srq++;
		}
	ck_assert_int_eq(of_cq, 2);
	ck_assert_int_eq(of_srq, 1);
	expect_quiet(n.ctx);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_RESET);
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/* A CQ error breaks each QP of the CQ when the QP needs a completion. */
START_TEST(cq_err_breaks_all_qps)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct opts o = default_opts();
	struct addr self;
	struct ibv_qp *qp[2];
	struct node n;
	int i;

	fault("cq:nth=2:CQ_ERR");
	node_open(&n, NULL, MEM_HEAP, &o);
	for (i = 0; i < 2; i++) {
		qp[i] = n.qp;
		self = node_addr(&n);
		node_connect(&n, &self);
		if (!i)
			node_make_qp(&n);
	}
	for (i = 0; i < 2; i++) {
		ck_ok(post_wr(qp[i], &wr));
		expect_ok(n.scq, 0, IBV_WC_RDMA_WRITE);
	}
	expect_async(n.ctx, IBV_EVENT_CQ_ERR, n.scq);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(qp_state(qp[i]), IBV_QPS_RTS);
		ck_ok(post_wr(qp[i], &wr));
		expect_async(n.ctx, IBV_EVENT_QP_FATAL, qp[i]);
		ck_assert_int_eq(qp_state(qp[i]), IBV_QPS_ERR);
	}
	expect_none(n.scq, QUIET_MS);
	ck_ok(ibv_destroy_qp(qp[0]));
	node_close(&n);
}
END_TEST

static void b_is_told(struct node *b, void *arg)
{
	expect_event(b->ctx, *(int *)arg);
}

static bool is_stopped(pid_t pid)
{
	char path[32], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(f);
	return state == 'T';
}

/*
 * An event that is due before libibverbs has created the context's queue of
 * asynchronous events is not lost.
 */
START_TEST(event_due_before_queue)
{
	struct opts o = default_opts();
	struct node n;

	fault("port:ms=1:LID_CHANGE");
	ioctl_delay_ms = 50;
	node_open(&n, NULL, MEM_HEAP, &o);
	ioctl_delay_ms = 0;
	expect_event(n.ctx, IBV_EVENT_LID_CHANGE);
	node_close(&n);
}
END_TEST

/* Rules with ms= strike in the order of their times, not of their text. */
START_TEST(ms_rules_in_order_of_time)
{
	pid_t pid, self = getpid();
	struct opts o = default_opts();
	struct node n;

	fault("port:ms=200:SM_CHANGE\nport:ms=100:LID_CHANGE");
	node_open(&n, NULL, MEM_HEAP, &o);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		while (!is_stopped(self))
			usleep(1000);
		usleep(300000);
		kill(self, SIGCONT);
		_exit(0);
	}
	ck_ok(raise(SIGSTOP)); /* stopped until both are due */
	ck_ok(reap_child(pid));
	expect_event(n.ctx, IBV_EVENT_LID_CHANGE);
	expect_event(n.ctx, IBV_EVENT_SM_CHANGE);
	node_close(&n);
}
END_TEST

/*
 * Fork a child that opens the device and calls @fn.  The parent may have had
 * its fault already.
 */
static pid_t child_begin(void (*fn)(void))
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		struct opts o = default_opts();

		leave_check();
		duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
		fn();
		duo_close(&d);
		_exit(0);
	}
	return pid;
}

static void expect_both_qps(void)
{
	expect_event(d.a.ctx, IBV_EVENT_QP_FATAL);
	expect_event(d.a.ctx, IBV_EVENT_QP_FATAL);
}

/* A child has its own timers, and its faults do not affect the parent. */
START_TEST(child_has_own_timers)
{
	open_duo("qp:ms=150:type=RC:QP_FATAL", SAME_CONTEXT);
	expect_both_qps();
	duo_renew(&d);
	ck_ok(reap_child(child_begin(expect_both_qps)));
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	ck_assert_int_eq(qp_state(d.b.qp), IBV_QPS_RTS);
	write_one(1);
	duo_close(&d);
}
END_TEST

static void expect_down_and_up(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		write_one(1);
		expect_event(d.a.ctx, IBV_EVENT_PORT_ERR);
		expect_event(d.a.ctx, IBV_EVENT_PORT_ACTIVE);
	}
}

/* DOWN rules also apply to the port of a child. */
START_TEST(port_rules_apply_to_child)
{
	open_duo("port:at=post:DOWN=30", SAME_CONTEXT);
	expect_down_and_up();
	ck_ok(reap_child(child_begin(expect_down_and_up)));
	duo_close(&d);
}
END_TEST

/*
 * Both processes see that the port is down.  What is posted meanwhile arrives
 * when the port is active again.
 */
START_TEST(port_down_for_ms)
{
	int type = IBV_EVENT_PORT_ERR;

	open_duo("port:at=post:nth=2:DOWN=150", TWO_PROCESSES);
	write_one(1);
	expect_quiet(d.a.ctx);
	ck_assert_int_eq(port_of(d.a.ctx).state, IBV_PORT_ACTIVE);
	write_one(2);
	expect_event(d.a.ctx, IBV_EVENT_PORT_ERR);
	on_b(&d, b_is_told, &type, sizeof(type));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 0, 8, 0, 0));
	expect_event(d.a.ctx, IBV_EVENT_PORT_ACTIVE);
	expect_ok(d.a.scq, 3, IBV_WC_RDMA_WRITE);
	ck_assert_int_eq(port_of(d.a.ctx).state, IBV_PORT_ACTIVE);
	duo_close(&d);
}
END_TEST

/*
 * Port events with ms= occur after the given time.  DOWN lasts for the given
 * time.
 */
START_TEST(port_event_after_ms)
{
	double before = now_ms();

	open_duo("port:ms=30:LID_CHANGE\nport:ms=60:DOWN=60", SAME_CONTEXT);
	expect_event(d.a.ctx, IBV_EVENT_LID_CHANGE);
	expect_event(d.a.ctx, IBV_EVENT_PORT_ERR);
	expect_event(d.a.ctx, IBV_EVENT_PORT_ACTIVE);
	ck_assert(now_ms() - before >= 119);
	write_one(1);
	duo_close(&d);
}
END_TEST

/*
 * A port that is down becomes active if the process closes the device or
 * exits.
 */
START_TEST(port_active_after_exit)
{
	struct opts o = default_opts();
	pid_t pid;

	fault("port:at=post:nth=1:DOWN=3000000");
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
		write_one(1);
		expect_event(d.a.ctx, IBV_EVENT_PORT_ERR);
		if (_i)
			exit(0);
		duo_close(&d);
		_exit(0);
	}
	ck_ok(reap_child(pid));
	open_duo("", SAME_CONTEXT);
	ck_assert_int_eq(port_of(d.a.ctx).state, IBV_PORT_ACTIVE);
	write_one(1);
	duo_close(&d);
}
END_TEST

/*
 * After DEVICE_FATAL, WRs are flushed and verbs calls fail with EIO, but
 * objects can be destroyed.
 */
START_TEST(device_fatal)
{
	open_duo("device:nth=2:DEVICE_FATAL", TWO_PROCESSES);
	ck_ok(post_recv(&d.a, 9, 0, 8));
	write_one(1);
	expect_quiet(d.a.ctx);
	write_one(2);
	expect_event(d.a.ctx, IBV_EVENT_DEVICE_FATAL);
	expect(d.a.rcq, 9, IBV_WC_WR_FLUSH_ERR);
	ck_errno(ibv_alloc_pd(d.a.ctx), EIO);
	ck_errno(ibv_reg_mr(d.a.pd, d.a.buf, 8, 0), EIO);
	ck_errno(ibv_open_device(d.a.ctx->device), EIO);
	/* b still has the device, and a can destroy its objects */
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	duo_close(&d);
}
END_TEST

/*
 * Progress of a child that posts WRITEs to itself: WRs posted, and
 * completions polled
 */
struct work {
	_Atomic int begun, got;
};

static int seen(_Atomic int *count)
{
	return atomic_load_explicit(count, memory_order_acquire);
}

static void work(struct work *w, int many)
{
	struct opts o = default_opts();
	int i;

	leave_check();
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < many; i++) {
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
		atomic_fetch_add_explicit(&w->begun, 1, memory_order_release);
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
		atomic_fetch_add_explicit(&w->got, 1, memory_order_release);
	}
	duo_close(&d);
	_exit(0);
}

static pid_t work_begin(struct work *w, int many)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid)
		work(w, many);
	return pid;
}

/*
 * KILL terminates the process at the N-th post or completion, if prog=
 * matches.
 */
START_TEST(process_killed)
{
	static const struct {
		const char *rule;
		int begun, got, end;
	} cases[] = {
		{ "process:nth=5:KILL", 5, 4, -SIGKILL },
		{ "process:at=post:nth=5:KILL", 4, 4, -SIGKILL },
		{ "process:nth=100:KILL", 7, 7, 0 },
		{ "process:prog=other:nth=5:KILL", 7, 7, 0 },
		{ "process:prog=faults-events:nth=1:KILL", 1, 0, -SIGKILL },
	};
	struct work *w = shared_page();

	fault(cases[_i].rule);
	ck_assert_int_eq(reap_child(work_begin(w, 7)), cases[_i].end);
	ck_assert_int_eq(seen(&w->begun), cases[_i].begun);
	ck_assert_int_eq(seen(&w->got), cases[_i].got);
}
END_TEST

/* STOP stops the process.  It proceeds after SIGCONT. */
START_TEST(process_stopped)
{
	struct work *w = shared_page();
	int status;
	pid_t pid;

	fault("process:nth=3:STOP");
	pid = work_begin(w, 7);
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	ck_assert_int_eq(seen(&w->got), 2);
	ck_ok(kill(pid, SIGCONT));
	ck_ok(reap_child(pid));
	ck_assert_int_eq(seen(&w->got), 7);
}
END_TEST

/* When b has stopped, a's operations still complete. */
static void *while_stopped(void *arg)
{
	siginfo_t info;
	uint64_t i;

	(void)arg;
	ck_ok(waitid(P_PID, (id_t)d.pid, &info, WSTOPPED | WNOWAIT));
	for (i = 0; i < 200; i++) {
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 64, 0, 0));
		ck_ok(post(&d, IBV_WR_RDMA_READ, i, 64, 64, 64, 0));
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
		expect_ok(d.a.scq, i, IBV_WC_RDMA_READ);
	}
	for (i = 1; i <= 2; i++) {
		ck_ok(post(&d, IBV_WR_SEND, i, 0, 64, 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_SEND);
	}
	ck_ok(kill(d.pid, SIGCONT));
	return NULL;
}

/* A peer that is stopped does not affect transfers from and to its memory. */
START_TEST(stopped_peer_memory_accessible)
{
	pthread_t t;

	open_duo("process:at=recv:nth=2:STOP", TWO_PROCESSES);
	ck_ok(pthread_create(&t, NULL, while_stopped, NULL));
	b_recv(&d, 1, 0, 64);
	b_recv(&d, 2, 0, 64); /* returns when the process is continued */
	ck_ok(pthread_join(t, NULL));
	ck_assert_int_eq(b_wait_recv(&d).wr_id, 1);
	ck_assert_int_eq(b_wait_recv(&d).wr_id, 2);
	duo_close(&d);
}
END_TEST

/* SLEEP delays the thread by the given number of milliseconds. */
START_TEST(thread_delayed)
{
	double before;

	open_duo("process:at=post:nth=2:SLEEP=200", SAME_CONTEXT);
	write_one(1);
	before = now_ms();
	write_one(2);
	ck_assert(now_ms() - before >= 199);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("faults events");

	add_loop(s, qp_event_after_nth_post, 5);
	add(s, qp_event_at_recv);
	add(s, qp_event_after_ms);
	add(s, cq_err_event);
	add_loop(s, srq_events, 2);
	add_loop(s, events_without_state_change, 8);
	add(s, object_events_after_ms);
	add(s, cq_err_breaks_all_qps);
	add(s, port_down_for_ms);
	add(s, port_event_after_ms);
	add(s, event_due_before_queue);
	add(s, ms_rules_in_order_of_time);
	add(s, child_has_own_timers);
	add(s, port_rules_apply_to_child);
	add_loop(s, port_active_after_exit, 2);
	add(s, device_fatal);
	add_loop(s, process_killed, 5);
	add(s, process_stopped);
	add(s, stopped_peer_memory_accessible);
	add(s, thread_delayed);
	return run(s);
}
