// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receiving by pollers: a poller whose CQ stays empty receives from the socket
 * in place of the socket owner's thread, which does so again when the poller
 * has stopped.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other_host.h"

/* Return whether a thread of this process sleeps in ppoll(2). */
static bool is_in_ppoll(const char *tid)
{
	char path[64];
	long number = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/syscall", tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%ld", &number) != 1)
		number = -1; /* "running" */
	fclose(f);
	return number == SYS_ppoll;
}

/* Return the thread of the socket owner: it sleeps in ppoll(2). */
static pid_t owner_thread(void)
{
	const uint64_t until = now_ms() + WAIT_MS;
	struct dirent *e;
	pid_t found = 0;
	DIR *d;

	while (!found) {
		ck_assert(now_ms() < until);
		d = opendir("/proc/self/task");
		ck_assert_ptr_nonnull(d);
		while (!found && (e = readdir(d)))
			if (is_in_ppoll(e->d_name))
				found = atoi(e->d_name);
		closedir(d);
	}
	return found;
}

/* Tell the parent whether the thread is stopped, until it closes the pipe. */
static void __attribute__((noreturn)) hold(pid_t tid, int in, int out)
{
	char held = ptrace(PTRACE_SEIZE, tid, 0, 0) == 0 &&
		    ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 &&
		    waitpid(tid, NULL, __WALL) == tid;

	if (write(out, &held, 1) == 1 && read(in, &held, 1) < 0)
		_exit(1);
	_exit(0); /* detaches */
}

/* The thread of the socket owner does not run: the poller receives. */
START_TEST(poller_receives)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	const pid_t tid = owner_thread();
	int stop[2], stopped[2];
	struct ibv_wc wc;
	char held;
	pid_t pid;

	post_recv(qp, 5, 0, 100);
	ck_assert(!pipe(stop) && !pipe(stopped));
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	pid = fork();
	if (!pid) {
		close(stop[1]);
		hold(tid, stop[0], stopped[1]);
	}
	ck_assert_int_eq(read(stopped[0], &held, 1), 1);
	if (held) {
		say_send(qp, WIRE_SEND_ONLY, PSN, 0, 9);
		wc = await_completion();
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_int_eq(memcmp(buf, text, 9), 0);
		receive_answer(WIRE_ACK, PSN);
	} else {
		puts("not tested: ptrace(2) is not permitted");
	}
	close(stop[1]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* A poller has received for long, and stops: the thread receives. */
START_TEST(thread_receives_again)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	uint64_t until;
	uint32_t i;

	allow(qp, IBV_ACCESS_REMOTE_WRITE);
	for (i = 0; i < 5; i++) {
		for (until = now_ms() + 20; now_ms() < until;)
			no_completion();
		say_rdma(qp, WIRE_WRITE_ONLY, PSN + i, mr->rkey, 4, 4);
		receive_answer(WIRE_ACK, PSN + i);
	}
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

TCase *poll_case(void)
{
	TCase *t = tcase_create("poll");

	tcase_set_timeout(t, 0);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, poller_receives);
	tcase_add_test(t, thread_receives_again);
	return t;
}
