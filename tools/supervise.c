// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The program stays in our process group, and so has the terminal: Ctrl-C and
 * Ctrl-Z reach both.  All signals that can be caught are blocked here and taken
 * in turn with what becomes of the program.  One that a process has sent is
 * passed on; one that the kernel has sent for the terminal's user has reached
 * the program as well.
 *
 * Who ends what the program has started cannot go by the process group, because
 * it is also that of the shell script that has called us.  We are the
 * subreaper: orphans become our children, so all that is left hangs below us.
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
/* To end by SIGTERM, and then to be gone after SIGKILL. */
#define GRACE (2 * NS_PER_S)
#define LOOK (NS_PER_S / 10)

struct supervision {
	pid_t child;
	int errors; /* a pipe's end: why it could not be executed */
	bool ended;
	sigset_t taken, before; /* signals; the mask that we had */
	struct sigaction sigchld; /* that we had */
	uint64_t until; /* 0: for ever */
	const struct attention *a;
	struct ending *e;
};

/* Signals that are ignored stay so, and those of faults are our own. */
static void supervision_begin(struct supervision *s)
{
	const struct sigaction def = { .sa_handler = SIG_DFL };
	struct sigaction old;
	int sig;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigaction(SIGCHLD, &def, &s->sigchld); /* ignored, it has no status */
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

	/* who kills us means it */
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

/* Not yet known: whether it can be executed. */
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

/* It has ended: 0, or the errno with which it could not be executed. */
static int supervision_error(struct supervision *s)
{
	int err;

	if (read(s->errors, &err, sizeof(err)) != sizeof(err))
		err = 0;
	close(s->errors);
	return err;
}

/* The program, or orphans that became ours. */
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

/* Stop as the program did; time that we are stopped does not count. */
static void supervision_stop(struct supervision *s)
{
	uint64_t since = clock_now();
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL); /* here it stops */
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

	/* nobody reads what we print: that is no signal for the program */
	if (sig == SIGCHLD || (sig == SIGPIPE && info->si_pid == getpid()))
		return;
	if (info->si_code <= 0) /* a process has sent it, not the kernel */
		kill(s->child, sig);
	if (sig == SIGTSTP)
		supervision_stop(s);
	if (signal_ends(sig))
		s->e->signal = sig;
}

/*
 * Its time is over: it is asked to end, and then made to.  Printing why must
 * not wait for a reader.
 */
static void supervision_expire(struct supervision *s)
{
	if (!s->e->late) {
		relay_begin();
		s->a->late();
	}
	descendants_signal(s->e->late ? SIGKILL : SIGTERM);
	s->e->late = true;
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
			left = left < LOOK ? left : LOOK;
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
	if (e->late)
		supervise_clear();
	return err;
}

/* Until all of our children are gone, or time is over; are they? */
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
	/* those that are born meanwhile are found the next time */
	for (until += GRACE; clock_now() < until;) {
		descendants_signal(SIGKILL);
		if (children_wait(clock_now() + GRACE / 20))
			return;
	}
}

void ending_describe(const struct ending *e, char *text, int len)
{
	size_t n = (size_t)len;

	if (e->late)
		snprintf(text, n, "its time was over");
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

	if (e->late)
		return EXIT_LATE;
	if (!WIFSIGNALED(e->status))
		return WEXITSTATUS(e->status);
	sig = WTERMSIG(e->status);
	fflush(NULL);
	prctl(PR_SET_DUMPABLE, 0); /* its core is there, ours is of no use */
	signal(sig, SIG_DFL);
	sigemptyset(&it);
	sigaddset(&it, sig);
	sigprocmask(SIG_UNBLOCK, &it, NULL);
	raise(sig);
	return 128 + sig; /* as the first process of a container */
}
