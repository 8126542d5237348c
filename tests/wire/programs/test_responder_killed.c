// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The socket owner is killed when it has written a completion for another
 * process, and not yet raised its event: ptrace(2) stops it when it is about
 * to send the ACK, which is in between.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other_host.h"

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

/* Kill the process when a thread of it is about to send packets. */
static void kill_before_sending(pid_t pid)
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
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY &&
		    info.entry.nr == SYS_sendmmsg)
			break;
	} while (!ptrace(PTRACE_SYSCALL, tid, 0, 0));
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
}

START_TEST(killed_before_the_event)
{
	struct ibv_comp_channel *channel;
	struct pollfd p = { .events = POLLIN };
	const pid_t pid = start_owner();
	struct ibv_cq *plain, *of;
	struct ibv_qp *qp;
	void *context;

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
		kill_before_sending(pid);
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
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
	cq = plain;
	ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
	teardown();
}
END_TEST

TCase *killed_case(void)
{
	TCase *t = tcase_create("killed");

	tcase_set_timeout(t, 0);
	tcase_add_test(t, killed_before_the_event);
	return t;
}
