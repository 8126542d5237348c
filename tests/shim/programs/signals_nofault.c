// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Cases of shim-signals about instructions that may fault: they resume at
 * their fix-up with any disposition of the program, and urxe_nofault()
 * detects that its handlers were replaced.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "signals.h"

#define FORKS 500

static void expect_fault(struct nofault_result r, const void *at)
{
	CHECK(r.failed == 1);
	CHECK(r.at == (uintptr_t)at);
	CHECK(errno == EXDEV);
}

/* Each kind of fault, and accesses that do not fault. */
static void access_each(void)
{
	char *none = map_page(PROT_NONE), *ro = map_page(PROT_READ);
	char *past = map_past_end(), *gone = NOT_MAPPED;
	char good = 0;

	errno = EXDEV;
	expect_fault(nofault_load(NULL), NULL);
	expect_fault(nofault_store(NULL), NULL);
	expect_fault(nofault_load(none + 1), none + 1);
	expect_fault(nofault_store(none + 2), none + 2);
	expect_fault(nofault_store(ro + PAGE - 1), ro + PAGE - 1);
	expect_fault(nofault_load(past + 3), past + 3);
	expect_fault(nofault_store(past + 4), past + 4);
	expect_fault(nofault_load(gone + 5), gone + 5);
	expect_fault(nofault_store(gone + 6), gone + 6);
#if defined(__x86_64__)
	expect_fault(nofault_load((char *)0x8000000000000000ull), NULL);
	expect_fault(nofault_store((char *)0x8000000000000000ull), NULL);
#endif
	CHECK(!nofault_load(ro).failed && !nofault_store(&good).failed);
	CHECK(!munmap(none, PAGE) && !munmap(ro, PAGE) && !munmap(past, PAGE));
}

static void on_unexpected(int sig)
{
	(void)sig;
	CHECK(!"the program's handler was called");
}

static void on_user(int sig)
{
	(void)sig;
	access_each();
}

static void *access_in_thread(void *arg)
{
	int i;

	for (i = 0; i < 100; i++)
		access_each();
	return arg;
}

static void case_access(void)
{
	static char alternate[65536];
	const stack_t st = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct sigaction act = { .sa_handler = on_unexpected };
	pthread_t thread;

	access_each();
	CHECK(signal(SIGSEGV, SIG_IGN) == SIG_DFL);
	CHECK(signal(SIGBUS, SIG_IGN) == SIG_DFL);
	access_each();
	CHECK(!sigaction(SIGSEGV, &act, NULL) &&
	      !sigaction(SIGBUS, &act, NULL));
	access_each();
	CHECK(!sigaltstack(&st, NULL));
	sigfillset(&act.sa_mask);
	act.sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
	CHECK(!sigaction(SIGSEGV, &act, NULL) &&
	      !sigaction(SIGBUS, &act, NULL));
	access_each();
	CHECK(!sigaction(SIGSEGV, NULL, &act));
	CHECK(act.sa_handler == on_unexpected);
	CHECK(signal(SIGUSR1, on_user) == SIG_DFL && !raise(SIGUSR1));
	CHECK(!pthread_create(&thread, NULL, access_in_thread, NULL));
	access_in_thread(NULL);
	CHECK(!pthread_join(thread, NULL));
	CHECK(nofault_install());
}

/* Without the section a fault of the same kind kills the program. */
static void case_no_section(void)
{
	static volatile char *volatile null;

	CHECK(nofault_load(NULL).failed);
	*null = 1;
}

/* The last calls made the thread check again, or did not. */
static void expect_blocked(bool changes)
{
	CHECK(nofault_installed);
	CHECK(nofault_thread.unblocked == !changes);
	nofault_thread.unblocked = true;
}

static void on_nothing(int sig)
{
	(void)sig;
}

static void change_mask(int how, int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	CHECK(!pthread_sigmask(how, &set, NULL));
}

static bool is_blocked(int sig)
{
	sigset_t set;

	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &set));
	return sigismember(&set, sig) == 1;
}

/* Calls that may block one of the signals make the thread check again. */
static void case_blocks(void)
{
	const int signals[] = { SIGSEGV, SIGBUS };
	sigset_t set, other, bad;
	int i;

	sigemptyset(&other);
	sigaddset(&other, SIGUSR1);
	expect_blocked(true);
	for (i = 0; i < 2; i++) {
		sigemptyset(&set);
		sigaddset(&set, signals[i]);
		CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
		expect_blocked(true);
		CHECK(!pthread_sigmask(SIG_UNBLOCK, &set, NULL));
		CHECK(!pthread_sigmask(SIG_BLOCK, &other, &bad));
		CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &bad));
		CHECK(pthread_sigmask(55, &set, NULL) == EINVAL);
		CHECK(sigprocmask(55, &set, NULL) == -1);
		expect_blocked(false);
		CHECK(!pthread_sigmask(SIG_SETMASK, &set, NULL));
		expect_blocked(true);
		CHECK(!sigprocmask(SIG_SETMASK, &other, NULL));
		CHECK(!sigprocmask(SIG_UNBLOCK, &set, NULL));
		expect_blocked(false);
		CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
		expect_blocked(true);
		CHECK(!sighold(signals[i]));
		expect_blocked(true);
		CHECK(!sighold(SIGUSR2) && !sigrelse(signals[i]));
		expect_blocked(false);
		CHECK(sigset(signals[i], SIG_HOLD) != SIG_ERR);
		expect_blocked(true);
		CHECK(sigset(signals[i], on_nothing) == SIG_HOLD);
		expect_blocked(false);
		/* it is blocked while its handler runs, and maybe after that */
		CHECK(!raise(signals[i]));
		expect_blocked(true);
		CHECK(!nofault_load(&set).failed && nofault_load(NULL).failed);
		expect_blocked(false);
		CHECK(nofault_install());
		expect_blocked(false);
	}
}

#define BIT(sig) (1 << ((sig)-1))

/* Masks of 4.3BSD */
static void case_bsd_masks(void)
{
	expect_blocked(true);
	sigblock(BIT(SIGUSR1));
	expect_blocked(false);
	sigblock(BIT(SIGSEGV));
	expect_blocked(true);
	sigsetmask(0);
	expect_blocked(false);
	sigsetmask(BIT(SIGBUS));
	expect_blocked(true);
}

static sigjmp_buf point;

static void on_jump(int sig)
{
	(void)sig;
	CHECK(is_blocked(SIGSEGV));
	longjmp(point, 1);
}

/* A jump that restores a mask, or out of a handler with a mask. */
static void case_jumps(void)
{
	struct sigaction act = { .sa_handler = on_jump };

	expect_blocked(true);
	change_mask(SIG_BLOCK, SIGBUS);
	if (!sigsetjmp(point, 1)) {
		change_mask(SIG_UNBLOCK, SIGBUS);
		nofault_thread.unblocked = true;
		siglongjmp(point, 1);
	}
	CHECK(is_blocked(SIGBUS));
	expect_blocked(true);
	change_mask(SIG_UNBLOCK, SIGBUS);
	sigaddset(&act.sa_mask, SIGSEGV);
	CHECK(!sigaction(SIGUSR1, &act, NULL));
	expect_blocked(false);
	if (!sigsetjmp(point, 0))
		raise(SIGUSR1);
	CHECK(is_blocked(SIGSEGV));
	expect_blocked(true);
}

static ucontext_t here, there;

static void visit(void)
{
	CHECK(is_blocked(SIGSEGV));
	expect_blocked(true);
	change_mask(SIG_UNBLOCK, SIGSEGV);
	expect_blocked(false);
	CHECK(!setcontext(&here));
}

/* The same with contexts */
static void case_contexts(void)
{
	static char stack[65536];

	expect_blocked(true);
	change_mask(SIG_BLOCK, SIGSEGV);
	CHECK(!getcontext(&there));
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	makecontext(&there, visit, 0);
	CHECK(!swapcontext(&here, &there));
	CHECK(is_blocked(SIGSEGV));
	expect_blocked(true);
}

static void *be_urxe(void *arg)
{
	nofault_thread.is_urxe = true;
	change_mask(SIG_UNBLOCK, SIGSEGV);
	change_mask(SIG_UNBLOCK, SIGBUS);
	access_each();
	nofault_thread.unblocked = true;
	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	/* a thread that took a signal relies on the handler no longer */
	CHECK(nofault_thread.unblocked ==
	      !(is_blocked(SIGSEGV) || is_blocked(SIGBUS)));
	return NULL;
}

static void *wait_for_signals(void *arg)
{
	const int signals[] = { SIGSEGV, SIGBUS };
	siginfo_t info;
	sigset_t set;
	int i;

	for (i = 0; i < 2; i++) {
		sigemptyset(&set);
		sigaddset(&set, signals[i]);
		CHECK(sigwaitinfo(&set, &info) == signals[i]);
		CHECK(info.si_code == SI_QUEUE && info.si_pid == getpid());
		CHECK(info.si_value.sival_int == 5 + i);
	}
	return arg;
}

/*
 * Signals that are sent while each thread of the program blocks them stay
 * pending, although a thread of urxe does not block them.
 */
static void case_threads_of_urxe(void)
{
	static const int actions[] = { SA_NODEFER, SA_RESTART };
	pthread_t urxe[2], thread;
	pthread_barrier_t barrier;
	union sigval value;
	unsigned int i;

	for (i = 0; i < 2; i++)
		set_action(i ? SIGBUS : SIGSEGV, (void *)on_unexpected,
			   actions[i]);
	change_mask(SIG_BLOCK, SIGSEGV);
	change_mask(SIG_BLOCK, SIGBUS);
	CHECK(!pthread_barrier_init(&barrier, NULL, 3));
	for (i = 0; i < 2; i++)
		CHECK(!pthread_create(&urxe[i], NULL, be_urxe, &barrier));
	pthread_barrier_wait(&barrier);
	for (i = 0; i < 2; i++) {
		value.sival_int = 5 + (int)i;
		CHECK(!sigqueue(getpid(), i ? SIGBUS : SIGSEGV, value));
	}
	CHECK(!pthread_create(&thread, NULL, wait_for_signals, NULL));
	CHECK(!pthread_join(thread, NULL));
	pthread_barrier_wait(&barrier);
	for (i = 0; i < 2; i++)
		CHECK(!pthread_join(urxe[i], NULL));
	CHECK(!pthread_barrier_destroy(&barrier));
}

/* struct sigaction of the kernel, without the restorer of some machines */
struct raw_action {
	void *handler;
	unsigned long words[3];
};

static struct raw_action raw_sigaction(int sig, const struct raw_action *act)
{
	struct raw_action old;

	CHECK(!syscall(SYS_rt_sigaction, sig, act, &old, 8));
	return old;
}

/* The action is replaced by a direct system call: this is final. */
static void lose(int sig)
{
	struct raw_action act = raw_sigaction(sig, NULL);
	const int other = sig == SIGSEGV ? SIGBUS : SIGSEGV;
	struct sigaction old;

	CHECK(signal(sig, on_nothing) == SIG_DFL);
	CHECK(signal(other, on_unexpected) == SIG_DFL);
	CHECK(nofault_install());
	act.handler = (void *)SIG_IGN;
	raw_sigaction(sig, &act);
	CHECK(nofault_installed);
	CHECK(!nofault_install() && !nofault_installed);
	CHECK(!nofault_install() && !nofault_installed);
	CHECK(!sighold(SIGBUS) && !sigrelse(SIGBUS) && !nofault_installed);
	/* the program sees the kernel's action of one, its own of the other */
	CHECK(signal(sig, on_unexpected) == SIG_IGN);
	CHECK(!sigaction(other, NULL, &old));
	CHECK(old.sa_handler == on_unexpected && !(old.sa_flags & SA_SIGINFO));
	CHECK(signal(other, on_nothing) == on_unexpected && !raise(other));
	CHECK(raw_sigaction(other, NULL).handler == (void *)on_nothing);
	CHECK(!nofault_install() && !nofault_installed);
}

static void case_replaced_segv(void)
{
	lose(SIGSEGV);
}

static void case_replaced_bus(void)
{
	lose(SIGBUS);
}

/* urxe's handler, read by a direct system call, is set again by libc. */
static void case_restored(void)
{
	const struct raw_action was = raw_sigaction(SIGSEGV, NULL);
	struct sigaction act = {
		.sa_sigaction = (__typeof__(act.sa_sigaction))was.handler,
		.sa_flags = SA_SIGINFO
	};

	CHECK(signal(SIGSEGV, on_nothing) == SIG_DFL);
	CHECK(!sigaction(SIGSEGV, &act, NULL));
	CHECK(!sigaction(SIGSEGV, NULL, &act));
	CHECK(act.sa_handler == on_nothing && !raise(SIGSEGV));
	CHECK(nofault_install());
	access_each();
}

/* Two actions that differ in each part */
static struct sigaction action_of(bool b)
{
	struct sigaction act = { .sa_handler = b ? on_nothing : on_unexpected,
				 .sa_flags = b ? SA_ONSTACK : SA_RESTART };

	sigemptyset(&act.sa_mask);
	sigaddset(&act.sa_mask, b ? SIGUSR1 : SIGUSR2);
	return act;
}

static bool is_action(const struct sigaction *act)
{
	const bool b = act->sa_handler == on_nothing;

	return !!(act->sa_flags & SA_ONSTACK) == b &&
	       !!(act->sa_flags & SA_RESTART) != b &&
	       sigismember(&act->sa_mask, SIGUSR1) == b &&
	       sigismember(&act->sa_mask, SIGUSR2) != b;
}

static _Atomic bool is_done;
static _Atomic unsigned int changes;

static void *change_actions(void *arg)
{
	struct sigaction act, old;

	while (!is_done) {
		act = action_of(changes++ & 1);
		CHECK(!sigaction(SIGSEGV, &act, &old));
		CHECK(is_action(&old));
	}
	return arg;
}

/* The child of a fork during sigaction(2) in another thread */
static void child_of_fork(void)
{
	const struct raw_action raw = raw_sigaction(SIGSEGV, NULL);
	struct sigaction act, old;

	CHECK(!sigaction(SIGSEGV, NULL, &old));
	CHECK(is_action(&old));
	/* the kernel's flags are those of the same action */
	CHECK(!(raw.words[0] & SA_ONSTACK) == !(old.sa_flags & SA_ONSTACK));
	act = action_of(old.sa_handler != on_nothing);
	CHECK(!sigaction(SIGSEGV, &act, &old));
	CHECK(!sigaction(SIGSEGV, NULL, &old));
	CHECK(old.sa_handler == act.sa_handler);
	CHECK(nofault_load(NULL).failed);
	CHECK(nofault_install());
	_exit(0);
}

static void case_fork(void)
{
	struct sigaction act = action_of(true);
	pthread_t thread[2];
	unsigned int seen;
	int i, status;
	pid_t pid;

	CHECK(!sigaction(SIGSEGV, &act, NULL));
	for (i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, change_actions, NULL));
	for (i = 0; i < FORKS; i++) {
		/* between any two forks there is a change */
		seen = changes;
		while (changes == seen)
			sched_yield();
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			child_of_fork();
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
	is_done = true;
	for (i = 0; i < 2; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

/* Faults in one thread while another changes the action */
static void case_changes(void)
{
	struct sigaction act = action_of(true), old;
	pthread_t thread[2];
	int i;

	CHECK(!sigaction(SIGSEGV, &act, NULL));
	for (i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, change_actions, NULL));
	for (i = 0; i < 20000; i++) {
		CHECK(nofault_load(NULL).failed);
		CHECK(!sigaction(SIGSEGV, NULL, &old));
		CHECK(is_action(&old));
	}
	is_done = true;
	for (i = 0; i < 2; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

/* A child whose parent's handlers of pthread_atfork(3) did not run */
static void case_raw_fork(void)
{
	struct sigaction old;
	int status;
	pid_t pid;

	CHECK(signal(SIGSEGV, on_unexpected) == SIG_DFL);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(nofault_load(NULL).failed && nofault_install());
		CHECK(!sigaction(SIGSEGV, NULL, &old));
		CHECK(old.sa_handler == on_unexpected);
		CHECK(signal(SIGSEGV, on_nothing) == on_unexpected);
		CHECK(!raise(SIGSEGV));
		CHECK(!nofault_install());
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(signal(SIGSEGV, on_nothing) == on_unexpected);
	CHECK(nofault_load(NULL).failed && nofault_install());
}

static void case_off(void)
{
	CHECK(!nofault_install() && !nofault_installed);
	CHECK(raw_sigaction(SIGSEGV, NULL).handler == (void *)SIG_DFL);
	CHECK(raw_sigaction(SIGBUS, NULL).handler == (void *)SIG_DFL);
	CHECK(signal(SIGBUS, on_nothing) == SIG_DFL);
	CHECK(raw_sigaction(SIGBUS, NULL).handler == (void *)on_nothing);
}

const struct signals_case nofault_cases[] = {
	CASE(access),	 CASE(no_section),    CASE(blocks),
	CASE(jumps),	 CASE(contexts),      CASE(threads_of_urxe),
	CASE(bsd_masks), CASE(replaced_segv), CASE(replaced_bus),
	CASE(restored),	 CASE(fork),	      CASE(changes),
	CASE(raw_fork),	 CASE(off),	      { NULL, NULL },
};
