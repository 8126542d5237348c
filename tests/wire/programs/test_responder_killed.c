// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The socket owner is killed or stopped while it executes a packet for another
 * process.  ptrace(2) stops it in a system call that is in between.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other_host.h"
#include "shared/event_tag.h"

/* Trace the system calls of all threads.  Return false if not permitted. */
static bool trace(pid_t pid)
{
	struct dirent *e;
	char path[64];
	bool done = true;
	pid_t tid;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	ck_assert_ptr_nonnull(d);
	while (done && (e = readdir(d))) {
		tid = atoi(e->d_name);
		if (tid <= 0)
			continue;
		done = !ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) &&
		       !ptrace(PTRACE_INTERRUPT, tid, 0, 0) &&
		       waitpid(tid, NULL, __WALL) == tid &&
		       !ptrace(PTRACE_SYSCALL, tid, 0, 0);
	}
	closedir(d);
	return done;
}

/* Whether the system call is the given one; a write: of a completion event. */
static bool is_call(const struct __ptrace_syscall_info *info, long call)
{
	return info->op == PTRACE_SYSCALL_INFO_ENTRY &&
	       (long)info->entry.nr == call &&
	       (call != SYS_write || info->entry.args[2] == EVENT_COMP_SIZE);
}

/*
 * Stop a thread of the traced processes when it begins the system call.
 * Returns the thread.
 */
static pid_t stop_before(long call)
{
	struct __ptrace_syscall_info info;
	int status;
	pid_t tid;

	do {
		tid = waitpid(-1, &status, __WALL);
		ck_assert_int_gt(tid, 0);
		ck_assert(WIFSTOPPED(status));
		memset(&info, 0, sizeof(info));
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info),
			       &info);
		if (is_call(&info, call))
			break;
	} while (!ptrace(PTRACE_SYSCALL, tid, 0, 0));
	return tid;
}

static void kill_traced(pid_t pid)
{
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	/* its first thread ends last */
	while (waitpid(-1, NULL, __WALL) != pid)
		;
}

/* What the killed process is about to do. */
static const struct {
	long call;
	bool shared; /* a child of it has the context, too */
} ends[] = {
	{ SYS_sendmmsg, false }, /* send the ACK */
	{ SYS_sendmmsg, true },
	{ SYS_write,
	  false }, /* write the event; the CQ is not armed any more */
	{ SYS_write, true },
};

/*
 * It has written a completion, and not yet raised its event.
 */
START_TEST(killed_before_the_event)
{
	struct ibv_comp_channel *channel;
	struct pollfd p = { .events = POLLIN };
	struct ibv_cq *plain, *of;
	struct ibv_qp *qp;
	pid_t pid, child = 0;
	void *context;

	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	pid = start_owner_with(ends[_i].shared ? &child : NULL);
	setup();
	channel = ibv_create_comp_channel(ctx);
	ck_assert_ptr_nonnull(channel);
	plain = cq;
	cq = ibv_create_cq(ctx, 16, NULL, channel, 0);
	ck_assert_ptr_nonnull(cq);
	qp = make_qp(IBV_QPT_RC);
	post_recv(qp, 4, 0, 100);
	ck_assert_int_eq(ibv_req_notify_cq(cq, 0), 0);
	if (trace(pid)) {
		say_send(qp, WIRE_SEND_ONLY, PSN, 0, 9);
		stop_before(ends[_i].call);
		kill_traced(pid);
		p.fd = channel->fd;
		ck_assert_msg(poll(&p, 1, WAIT_MS) == 1, "no event");
		ck_assert_int_eq(ibv_get_cq_event(channel, &of, &context), 0);
		ibv_ack_cq_events(of, 1);
		ck_assert_uint_eq(await_completion().wr_id, 4);
	} else {
		puts("not tested: ptrace(2) is not permitted");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	if (child) {
		ck_assert_int_eq(kill(child, SIGKILL), 0);
		ck_assert_int_eq(waitpid(child, NULL, 0), child);
	}
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
	cq = plain;
	ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
	teardown();
}
END_TEST

/* Send the WRITE until it is acknowledged. */
static void write_until_acked(const struct ibv_qp *qp, uint32_t n)
{
	struct wire_packet p;

	do
		say_rdma(qp, WIRE_WRITE_ONLY, PSN, mr->rkey, n, n);
	while (!receive_within(&p, QUIET_MS));
	ck_assert_uint_eq(p.bth.opcode, WIRE_ACKNOWLEDGE);
	ck_assert_uint_eq(p.aeth.syndrome, WIRE_ACK);
	ck_assert_uint_eq(p.bth.psn, PSN);
	while (receive_within(&p, QUIET_MS))
		;
}

/*
 * The socket owner is stopped in the middle of a packet.  This process takes
 * over, and serves all QPs but the one of that packet until the other process
 * continues.
 */
START_TEST(stopped_in_a_packet)
{
	const pid_t pid = start_owner();
	struct ibv_qp *qp, *other;
	pid_t tid;

	setup();
	qp = make_qp(IBV_QPT_RC);
	other = make_qp(IBV_QPT_RC);
	if (trace(pid)) {
		say_rdma(qp, WIRE_WRITE_ONLY, PSN, mr->rkey, 9, 9);
		tid = stop_before(SYS_process_vm_writev);
		write_until_acked(other, 0);
		say_rdma(qp, WIRE_WRITE_ONLY, PSN, mr->rkey, 9, 9);
		silence();
		ck_assert(!buf[1]);
		ck_assert_int_eq(ptrace(PTRACE_DETACH, tid, 0, 0), 0);
		write_until_acked(qp, 9);
		ck_assert(!memcmp(buf, text, 9));
		kill_traced(pid);
	} else {
		puts("not tested: ptrace(2) is not permitted");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_destroy_qp(other), 0);
	teardown();
}
END_TEST

/*
 * The socket owner has written a completion, and not yet sent the ACK.  The
 * program polls, and moves the QP to ERR, as rdma_disconnect does, or to RESET,
 * or destroys it: the ACK is sent first, since the sender would otherwise learn
 * of the disconnection and flush a SEND that was received.
 */
START_TEST(disconnected_before_the_ack)
{
	const pid_t pid = start_owner();
	const bool destroys = _i == 2;
	struct ibv_qp_attr attr = { .qp_state = _i ? IBV_QPS_RESET :
						     IBV_QPS_ERR };
	struct ibv_qp *qp;

	setup();
	qp = make_qp(IBV_QPT_RC);
	post_recv(qp, 4, 0, 100);
	if (trace(pid)) {
		say_send(qp, WIRE_SEND_ONLY, PSN, 0, 9);
		stop_before(SYS_sendmmsg);
		ck_assert_int_eq(await_completion().status, IBV_WC_SUCCESS);
		if (!destroys)
			ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE),
					 0);
		else
			ck_assert_int_eq(ibv_destroy_qp(qp), 0);
		receive_answer(WIRE_ACK, PSN);
		kill_traced(pid);
	} else {
		puts("not tested: ptrace(2) is not permitted");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (destroys)
			ibv_destroy_qp(qp);
	}
	if (!destroys)
		ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	teardown();
}
END_TEST

TCase *killed_case(void)
{
	TCase *t = tcase_create("killed");

	tcase_set_timeout(t, 0);
	tcase_add_loop_test(t, killed_before_the_event, 0,
			    sizeof(ends) / sizeof(ends[0]));
	tcase_add_test(t, stopped_in_a_packet);
	tcase_add_loop_test(t, disconnected_before_the_ack, 0, 3);
	return t;
}
