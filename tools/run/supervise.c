// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Run a program as a child in the same process group, and forward signals to
 * it.
 *
 * The child keeps the terminal, so Ctrl-C and Ctrl-Z reach both processes.
 * All signals that can be caught, SIGCHLD included, are blocked here, except
 * SIGTTIN, SIGTTOU and signals that are ignored. They are accepted one at a
 * time with sigtimedwait(2). A signal that a process sent (si_code <= 0) is
 * forwarded. A signal that the kernel sent on behalf of the terminal has
 * reached the child as well and is not forwarded.
 *
 * Processes that the program leaves behind are found among the descendants.
 * The process group cannot identify them, because a calling script may be in
 * it, too. This process is a child subreaper (PR_SET_CHILD_SUBREAPER), so
 * orphans become its children, and everything that is left is among its
 * descendants.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "descendants.h"
#include "relay.h"
#include "supervise.h"

#define NS_PER_S 1000000000ull
/* ns that processes have to exit after SIGTERM, and again after SIGKILL */
#define GRACE (2 * NS_PER_S)
#define CHECK_INTERVAL_NS (NS_PER_S / 10)

struct supervision {
	pid_t child;
	int errors; /* read end of a pipe: the errno of a failed execvp() */
	bool ended;
	sigset_t taken, before; /* signals accepted here; the previous mask */
	struct sigaction sigchld; /* previous action */
	uint64_t until; /* deadline, clock_now(); 0: none */
	const struct attention *a;
	struct ending *e;
};

/*
 * Block the signals to be accepted. Ignored signals stay ignored. A fault of
 * this process still kills it: the kernel delivers a synchronous signal even
 * if it is blocked. SIGCHLD must not be ignored, or there is no exit status.
 */
static void supervision_begin(struct supervision *s)
{
	const struct sigaction def = { .sa_handler = SIG_DFL };
	struct sigaction old;
	int sig;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigaction(SIGCHLD, &def, &s->sigchld);
	sigfillset(&s->taken);
	sigdelset(&s->taken, SIGTTIN);
	sigdelset(&s->taken, SIGTTOU);
	for (sig = 1; sig < NSIG; sig++)
		if (!sigaction(sig, NULL, &old) && old.sa_handler == SIG_IGN)
			sigdelset(&s->taken, sig);
	sigprocmask(SIG_BLOCK, &s->taken, &s->before);
}

static void supervision_end(struct supervision *s)
{
	sigaction(SIGCHLD, &s->sigchld, NULL);
	sigprocmask(SIG_SETMASK, &s->before, NULL);
}

static void __attribute__((noreturn))
supervision_execute(struct supervision *s, char **argv, pid_t parent, int fd)
{
	int err;

	/* if the supervisor is killed, the program is killed too */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	supervision_end(s);
	execvp(argv[0], argv);
	err = errno;
	if (write(fd, &err, sizeof(err)) != sizeof(err))
		_exit(1);
	_exit(0);
}

/*
 * Fork and execute. Return an errno value if fork() fails. Whether execvp()
 * failed is known only later: supervision_error().
 */
static int supervision_start(struct supervision *s, char **argv)
{
	pid_t parent = getpid();
	int p[2], err;

	if (pipe2(p, O_CLOEXEC))
		return errno;
	s->child = fork();
	if (s->child < 0) {
		err = errno;
		close(p[0]);
		close(p[1]);
		return err;
	}
	if (!s->child)
		supervision_execute(s, argv, parent, p[1]);
	close(p[1]);
	s->errors = p[0];
	return 0;
}

/* The errno of a failed execvp(), or 0. Called after the child exited. */
static int supervision_error(struct supervision *s)
{
	int err;

	if (read(s->errors, &err, sizeof(err)) != sizeof(err))
		err = 0;
	close(s->errors);
	return err;
}

/* Reap the program and orphans that were reparented to this process. */
static void supervision_reap(struct supervision *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != s->child)
			continue;
		s->ended = true;
		s->e->status = status;
	}
}

/*
 * Stop this process as SIGTSTP stopped the program. The time for which it is
 * stopped does not count against the limit.
 */
static void supervision_stop(struct supervision *s)
{
	uint64_t since = clock_now();
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL); /* stops here */
	sigprocmask(SIG_BLOCK, &stop, NULL);
	if (s->until)
		s->until += clock_now() - since;
}

static bool signal_ends(int sig)
{
	return sig == SIGHUP || sig == SIGINT || sig == SIGQUIT ||
	       sig == SIGTERM;
}

static void supervision_pass_on(struct supervision *s, const siginfo_t *info)
{
	int sig = info->si_signo;

	/* SIGPIPE was raised by a write of this process */
	if (sig == SIGCHLD || (sig == SIGPIPE && info->si_pid == getpid()))
		return;
	if (info->si_code <= 0) /* sent by a process, not by the kernel */
		kill(s->child, sig);
	if (sig == SIGTSTP)
		supervision_stop(s);
	if (signal_ends(sig))
		s->e->signal = sig;
}

/*
 * The time limit is exceeded: send SIGTERM to all descendants, and SIGKILL if
 * they are still there after GRACE. The late() callback prints through a
 * relay, so that it does not wait for a reader of standard error.
 */
static void supervision_expire(struct supervision *s)
{
	if (!s->e->timed_out) {
		relay_begin();
		s->a->late();
	}
	descendants_signal(s->e->timed_out ? SIGKILL : SIGTERM);
	s->e->timed_out = true;
	s->until = clock_now() + GRACE;
}

static void supervision_wait(struct supervision *s)
{
	struct timespec ts;
	uint64_t now, left;
	siginfo_t info;
	int sig;

	for (;;) {
		supervision_reap(s);
		if (s->ended)
			return;
		now = clock_now();
		if (s->until && now >= s->until) {
			supervision_expire(s);
			continue;
		}
		left = s->until ? s->until - now : 3600 * NS_PER_S;
		if (s->a->look) {
			s->a->look(s->a->arg);
			left = left < CHECK_INTERVAL_NS ? left :
							  CHECK_INTERVAL_NS;
		}
		ts.tv_sec = (time_t)(left / NS_PER_S);
		ts.tv_nsec = (long)(left % NS_PER_S);
		sig = sigtimedwait(&s->taken, &info, &ts);
		if (sig > 0)
			supervision_pass_on(s, &info);
	}
}

int supervise(char **argv, uint64_t limit, const struct attention *a,
	      struct ending *e)
{
	struct supervision s = { .a = a, .e = e };
	int err;

	relay_end();
	*e = (struct ending){ 0 };
	supervision_begin(&s);
	err = supervision_start(&s, argv);
	if (!err) {
		s.until = limit ? clock_now() + limit : 0;
		supervision_wait(&s);
		err = supervision_error(&s);
	}
	supervision_end(&s);
	if (e->timed_out)
		supervise_clear();
	return err;
}

/*
 * Reap children until there are none, or until the deadline. Return whether
 * there are none left.
 */
static bool children_wait(uint64_t until)
{
	const struct timespec nap = { .tv_nsec = 5000000 };
	pid_t pid;

	do {
		pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0 && errno == ECHILD)
			return true;
		if (!pid)
			nanosleep(&nap, NULL);
	} while (clock_now() < until);
	return false;
}

void supervise_clear(void)
{
	uint64_t until = clock_now() + GRACE;

	if (children_wait(0))
		return;
	descendants_signal(SIGTERM);
	if (children_wait(until))
		return;
	/* processes forked meanwhile are found by the next pass */
	for (until += GRACE; clock_now() < until;) {
		descendants_signal(SIGKILL);
		if (children_wait(clock_now() + GRACE / 20))
			return;
	}
}

void ending_describe(const struct ending *e, char *text, int len)
{
	size_t n = (size_t)len;

	if (e->timed_out)
		snprintf(text, n, "time limit expired");
	else if (WIFSIGNALED(e->status))
		snprintf(text, n, "signal %d (%s)", WTERMSIG(e->status),
			 strsignal(WTERMSIG(e->status)));
	else
		snprintf(text, n, "exit status %d", WEXITSTATUS(e->status));
}

int ending_pass_on(const struct ending *e)
{
	sigset_t it;
	int sig;

	if (e->timed_out)
		return EXIT_LATE;
	if (!WIFSIGNALED(e->status))
		return WEXITSTATUS(e->status);
	sig = WTERMSIG(e->status);
	fflush(NULL);
	prctl(PR_SET_DUMPABLE, 0); /* the program has dumped core already */
	signal(sig, SIG_DFL);
	sigemptyset(&it);
	sigaddset(&it, sig);
	sigprocmask(SIG_UNBLOCK, &it, NULL);
	raise(sig);
	/* not reached, unless this is PID 1 of a PID namespace */
	return 128 + sig;
}
