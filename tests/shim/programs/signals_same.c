// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Cases of shim-signals that use SIGSEGV and SIGBUS as programs do.  Their
 * output and wait status must not depend on urxe.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "signals.h"

#define THREADS 4

static _Thread_local sigjmp_buf jump;
/* the page that a thread accesses */
static _Thread_local char *page;
static volatile sig_atomic_t count;

/* Print a signal and what the program may know about it. */
static void print_info(const char *what, int sig, const siginfo_t *info)
{
	printf("%s %d code %d errno %d", what, sig, info->si_code, errno);
	if (info->si_code <= 0)
		printf(" own %d value %d\n", info->si_pid == getpid(),
		       info->si_code == SI_QUEUE ? info->si_value.sival_int :
						   0);
	else if (page)
		printf(" at %ld\n", (long)((char *)info->si_addr - page));
	else
		printf(" at %p\n", info->si_addr);
}

static void print_mask(const char *what, const sigset_t *set)
{
	int sig;

	printf("%s", what);
	for (sig = 1; sig < NSIG; sig++)
		if (sigismember(set, sig) == 1)
			printf(" %d", sig);
	printf("\n");
}

static void print_blocked(const char *what)
{
	sigset_t set;

	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &set));
	print_mask(what, &set);
}

static void on_signal(int sig)
{
	printf("handler %d\n", sig);
	siglongjmp(jump, 1);
}

static void on_info(int sig, siginfo_t *info, void *context)
{
	(void)context;
	print_info("info", sig, info);
	siglongjmp(jump, 1);
}

static void on_return(int sig, siginfo_t *info, void *context)
{
	(void)context;
	print_info("return", sig, info);
	count++;
}

static const char *name_of(void *handler)
{
	return handler == (void *)SIG_DFL   ? "SIG_DFL" :
	       handler == (void *)SIG_IGN   ? "SIG_IGN" :
	       handler == (void *)SIG_HOLD  ? "SIG_HOLD" :
	       handler == (void *)SIG_ERR   ? "SIG_ERR" :
	       handler == (void *)on_signal ? "on_signal" :
	       handler == (void *)on_info   ? "on_info" :
	       handler == (void *)on_return ? "on_return" :
					      "another";
}

static void print_action(int sig)
{
	struct sigaction old;

	memset(&old, 0x5a, sizeof(old));
	CHECK(!sigaction(sig, NULL, &old));
	printf("action %d %s flags %x restorer %d", sig,
	       name_of((void *)old.sa_handler), (unsigned int)old.sa_flags,
	       old.sa_restorer != NULL);
	print_mask(" mask", &old.sa_mask);
}

/* Fault in each way that has an address, and continue after it. */
static void fault_each(void)
{
	char *volatile bad[4];
	volatile int i, how;

	bad[0] = map_page(PROT_NONE);
	bad[1] = map_page(PROT_READ);
	bad[2] = map_past_end();
	bad[3] = NOT_MAPPED;
	for (i = 0; i < 4; i++) {
		for (how = 0; how < 2; how++) {
			page = bad[i];
			if (sigsetjmp(jump, 1))
				continue;
			if (how)
				store(page + 3);
			else
				load(page + 5);
			printf("no fault\n");
		}
	}
	page = NULL;
}

static void case_signal(void)
{
	printf("was %s\n", name_of((void *)signal(SIGSEGV, on_signal)));
	printf("was %s\n", name_of((void *)signal(SIGBUS, on_signal)));
	handlers_are_set();
	fault_each();
	print_action(SIGSEGV);
	printf("was %s\n", name_of((void *)signal(SIGSEGV, SIG_DFL)));
	printf("was %s\n", name_of((void *)signal(SIGSEGV, SIG_ERR)));
	printf("was %s\n", name_of((void *)signal(SIGBUS, SIG_IGN)));
	print_action(SIGSEGV);
	print_action(SIGBUS);
	print_blocked("blocked");
}

static void case_siginfo(void)
{
	set_action(SIGSEGV, on_info, SA_SIGINFO);
	set_action(SIGBUS, on_info, SA_SIGINFO);
	handlers_are_set();
	fault_each();
	fault_each();
	print_blocked("blocked");
}

/* The mask is not restored: the next fault is fatal. */
static void case_no_savemask(void)
{
	volatile int i;

	set_action(SIGSEGV, on_info, SA_SIGINFO);
	handlers_are_set();
	for (i = 0; i < 2; i++)
		if (!sigsetjmp(jump, 0))
			load(NULL);
	printf("alive\n");
}

static char alternate[65536];

static void on_stack(int sig, siginfo_t *info, void *context)
{
	char here;

	(void)info;
	(void)context;
	printf("stack %d %d\n", sig,
	       &here > alternate && &here < alternate + sizeof(alternate));
	siglongjmp(jump, 1);
}

static void alternate_set(void)
{
	const stack_t st = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	CHECK(!sigaltstack(&st, NULL));
}

static void case_onstack(void)
{
	alternate_set();
	set_action(SIGSEGV, on_stack, SA_SIGINFO | SA_ONSTACK);
	set_action(SIGBUS, on_stack, SA_SIGINFO);
	handlers_are_set();
	fault_each();
}

static void case_overflow(void)
{
	volatile int i;

	alternate_set();
	set_action(SIGSEGV, on_stack, SA_SIGINFO | SA_ONSTACK);
	handlers_are_set();
	for (i = 0; i < 3; i++)
		if (!sigsetjmp(jump, 1))
			overflow(NULL);
	printf("alive\n");
}

static void case_overflow_no_stack(void)
{
	set_action(SIGSEGV, on_info, SA_SIGINFO);
	handlers_are_set();
	overflow(NULL);
}

static void case_resethand(void)
{
	volatile int i;

	set_action(SIGSEGV, on_info, SA_SIGINFO | SA_RESETHAND);
	handlers_are_set();
	print_action(SIGSEGV);
	for (i = 0; i < 2; i++) {
		if (!sigsetjmp(jump, 1))
			load(NULL);
		print_action(SIGSEGV);
	}
}

static void case_resethand_sent(void)
{
	set_action(SIGBUS, on_return, SA_SIGINFO | SA_RESETHAND | SA_NODEFER);
	handlers_are_set();
	raise(SIGBUS);
	print_action(SIGBUS);
	raise(SIGBUS);
	printf("alive\n");
}

static void on_nested(int sig, siginfo_t *info, void *context)
{
	(void)context;
	print_info("nested", sig, info);
	if (++count == 3)
		siglongjmp(jump, 1);
	load(NULL);
}

static void case_nodefer(void)
{
	set_action(SIGSEGV, on_nested, SA_SIGINFO | SA_NODEFER);
	handlers_are_set();
	if (!sigsetjmp(jump, 1))
		load(NULL);
	printf("depth %d\n", count);
}

static void case_deferred(void)
{
	set_action(SIGSEGV, on_nested, SA_SIGINFO);
	handlers_are_set();
	if (!sigsetjmp(jump, 1))
		load(NULL);
	printf("depth %d\n", count);
}

static void case_ignored_fault(void)
{
	CHECK(signal(SIGSEGV, SIG_IGN) != SIG_ERR);
	handlers_are_set();
	load(NULL);
	printf("alive\n");
}

static void case_ignored_sent(void)
{
	const union sigval value = { .sival_int = 5 };

	CHECK(signal(SIGSEGV, SIG_IGN) != SIG_ERR);
	CHECK(signal(SIGBUS, SIG_IGN) != SIG_ERR);
	handlers_are_set();
	CHECK(!raise(SIGSEGV) && !kill(getpid(), SIGBUS));
	CHECK(!sigqueue(getpid(), SIGSEGV, value));
	printf("alive\n");
}

static void case_sent(void)
{
	const union sigval value = { .sival_int = 42 };

	set_action(SIGSEGV, on_return, SA_SIGINFO);
	set_action(SIGBUS, on_return, SA_SIGINFO | SA_NODEFER);
	handlers_are_set();
	CHECK(!raise(SIGSEGV) && !kill(getpid(), SIGBUS));
	CHECK(!sigqueue(getpid(), SIGSEGV, value));
	CHECK(!pthread_kill(pthread_self(), SIGBUS));
	printf("count %d\n", count);
}

static void case_pending(void)
{
	sigset_t set, old;
	siginfo_t info;

	set_action(SIGSEGV, on_return, SA_SIGINFO);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	handlers_are_set();
	CHECK(!sigprocmask(SIG_BLOCK, &set, &old));
	print_mask("old", &old);
	raise(SIGSEGV);
	raise(SIGSEGV);
	printf("count %d\n", count);
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
	printf("count %d\n", count);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	raise(SIGSEGV);
	CHECK(sigwaitinfo(&set, &info) == SIGSEGV);
	print_info("waited", SIGSEGV, &info);
	printf("count %d\n", count);
}

/* SIG_IGN discards signals that are pending. */
static void case_ignored_pending(void)
{
	sigset_t set, old;

	set_action(SIGSEGV, on_return, SA_SIGINFO);
	set_action(SIGBUS, on_return, SA_SIGINFO);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGBUS);
	handlers_are_set();
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, &old));
	CHECK(!raise(SIGSEGV) && !kill(getpid(), SIGSEGV));
	CHECK(!raise(SIGBUS) && !kill(getpid(), SIGBUS));
	CHECK(!sigpending(&set));
	print_mask("pending", &set);
	CHECK(signal(SIGSEGV, SIG_IGN) != SIG_ERR);
	CHECK(!sigpending(&set));
	print_mask("pending", &set);
	set_action(SIGSEGV, on_return, SA_SIGINFO);
	CHECK(signal(SIGBUS, SIG_IGN) != SIG_ERR);
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, NULL));
	printf("count %d\n", count);
}

/* Make the page accessible and return: the instruction is repeated. */
static void on_repair(int sig, siginfo_t *info, void *context)
{
	const uintptr_t at = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);

	(void)sig;
	(void)context;
	CHECK((char *)at == page);
	CHECK(!mprotect((void *)at, PAGE, PROT_READ | PROT_WRITE));
}

static void *repair(void *arg)
{
	int i;

	for (i = 0; i < 100; i++) {
		page = map_page(PROT_NONE);
		store(page + i);
		CHECK(load(page + i) == 1);
		CHECK(!munmap(page, PAGE));
	}
	return arg;
}

/* Each thread continues after faults of its own. */
static void on_own(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	CHECK((char *)info->si_addr == page + 7);
	siglongjmp(jump, 1);
}

static void *fault_often(void *arg)
{
	volatile int faults = 0, i;

	page = map_page(PROT_NONE);
	for (i = 0; i < 500; i++) {
		if (sigsetjmp(jump, 1))
			faults++;
		else
			load(page + 7);
	}
	CHECK(faults == 500);
	return arg;
}

static void in_threads(void *(*fn)(void *))
{
	pthread_t thread[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, fn, NULL));
	fn(NULL);
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
	printf("done\n");
}

static void case_repair(void)
{
	set_action(SIGSEGV, on_repair, SA_SIGINFO);
	handlers_are_set();
	in_threads(repair);
}

static void case_threads(void)
{
	set_action(SIGSEGV, on_own, SA_SIGINFO);
	handlers_are_set();
	in_threads(fault_often);
}

static void on_mask(int sig)
{
	printf("handler %d\n", sig);
	print_blocked("blocked");
}

static void case_mask(void)
{
	struct sigaction act = { .sa_handler = on_mask };

	sigemptyset(&act.sa_mask);
	sigaddset(&act.sa_mask, SIGUSR1);
	sigaddset(&act.sa_mask, SIGRTMAX);
	CHECK(!sigaction(SIGSEGV, &act, NULL));
	act.sa_flags = SA_NODEFER;
	CHECK(!sigaction(SIGBUS, &act, NULL));
	handlers_are_set();
	raise(SIGSEGV);
	raise(SIGBUS);
	print_blocked("blocked");
	sigfillset(&act.sa_mask);
	CHECK(!sigaction(SIGBUS, &act, NULL));
	print_action(SIGBUS);
	raise(SIGBUS);
	print_blocked("blocked");
}

/* What was set is what is returned, with flags unknown to the kernel, too. */
static void case_actions(void)
{
	static const int flags[] = { 0,
				     SA_ONSTACK,
				     SA_RESTART,
				     SA_NODEFER,
				     SA_RESETHAND,
				     SA_NOCLDSTOP | SA_NOCLDWAIT,
				     SA_INTERRUPT,
				     0x400,
				     0x800,
				     SA_ONSTACK | SA_RESTART | SA_NODEFER |
					     SA_RESETHAND };
	struct sigaction *volatile same;
	struct sigaction act, old;
	unsigned int i;

	print_action(SIGSEGV);
	print_action(SIGBUS);
	handlers_are_set();
	print_action(SIGSEGV);
	for (i = 0; i < 4 * sizeof(flags) / sizeof(*flags); i++) {
		memset(&act, 0, sizeof(act));
		act.sa_flags = flags[i / 4];
		sigaddset(&act.sa_mask, 1 + (int)i);
		switch (i % 4) {
		case 0:
			act.sa_handler = on_signal;
			break;
		case 1:
			act.sa_sigaction = on_info;
			act.sa_flags |= SA_SIGINFO;
			sigfillset(&act.sa_mask);
			break;
		case 2:
			act.sa_handler = SIG_IGN;
			break;
		case 3:
			act.sa_handler = SIG_DFL;
		}
		CHECK(!sigaction(SIGSEGV, &act, &old));
		printf("was %s %x\n", name_of((void *)old.sa_handler),
		       (unsigned int)old.sa_flags);
		print_action(SIGSEGV);
		print_action(SIGBUS);
	}
	/* the same object for both */
	act.sa_handler = on_signal;
	same = &act;
	CHECK(!sigaction(SIGBUS, &act, same));
	printf("was %s\n", name_of((void *)act.sa_handler));
	print_action(SIGBUS);
	CHECK(sigaction(NSIG, NULL, &act) == -1 && errno == EINVAL);
	CHECK(sigaction(SIGKILL, &act, NULL) == -1 && errno == EINVAL);
}

static void print_was(const char *call, sighandler_t was)
{
	printf("%s was %s\n", call, name_of((void *)was));
	print_action(SIGSEGV);
	print_blocked("blocked");
}

/* Obsolete functions, also those that headers no longer declare */
static void case_old_functions(void)
{
	static const char *const names[] = { "bsd_signal", "ssignal",
					     "__sysv_signal", "sysv_signal" };
	sighandler_t (*fn)(int, sighandler_t);
	unsigned int i;

	handlers_are_set();
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		fn = (__typeof__(fn))dlsym(RTLD_DEFAULT, names[i]);
		CHECK(fn);
		print_was(names[i], fn(SIGSEGV, on_signal));
		print_was(names[i], fn(SIGSEGV, SIG_IGN));
		print_was(names[i], fn(SIGSEGV, SIG_ERR));
		CHECK(errno == EINVAL);
	}
	CHECK(!siginterrupt(SIGSEGV, 1));
	print_was("signal", signal(SIGSEGV, on_signal));
	CHECK(!siginterrupt(SIGSEGV, 0));
	print_was("siginterrupt", SIG_DFL);
	CHECK(!siginterrupt(SIGSEGV, 1));
	print_was("siginterrupt", SIG_DFL);
	CHECK(!sigignore(SIGSEGV));
	print_was("sigignore", SIG_DFL);
	CHECK(!siginterrupt(SIGSEGV, 0));
	print_was("signal", signal(SIGSEGV, on_signal));
	CHECK(sigignore(NSIG) == -1 && errno == EINVAL);
}

static void case_sigset(void)
{
	handlers_are_set();
	print_was("sigset", sigset(SIGSEGV, on_signal));
	print_was("sigset", sigset(SIGSEGV, SIG_HOLD));
	print_was("sigset", sigset(SIGSEGV, SIG_HOLD));
	print_was("sigset", sigset(SIGSEGV, SIG_IGN));
	print_was("sigset", sigset(SIGSEGV, on_signal));
	CHECK(!sighold(SIGSEGV));
	print_was("sighold", SIG_DFL);
	CHECK(!sigrelse(SIGSEGV));
	print_was("sigrelse", SIG_DFL);
	print_was("sigset", sigset(SIGSEGV, SIG_ERR));
	print_was("sigset", sigset(NSIG, SIG_DFL));
}

/* SA_RESTART, and its absence: EINTR */
static int pipe_ends[2];
static pthread_t reader;
static volatile sig_atomic_t is_done;

static void on_count(int sig)
{
	(void)sig;
	count++;
}

static void *send_until_done(void *arg)
{
	while (!is_done) {
		CHECK(!pthread_kill(reader, SIGSEGV));
		if (arg && count)
			break;
		sched_yield();
	}
	if (arg)
		CHECK(write(pipe_ends[1], "x", 1) == 1);
	return NULL;
}

static void case_restart(void)
{
	struct sigaction act = { .sa_handler = on_count };
	pthread_t thread;
	char byte;
	int restart;

	CHECK(!pipe(pipe_ends));
	reader = pthread_self();
	for (restart = 0; restart < 2; restart++) {
		act.sa_flags = restart ? SA_RESTART : 0;
		CHECK(!sigaction(SIGSEGV, &act, NULL));
		handlers_are_set();
		count = is_done = 0;
		CHECK(!pthread_create(&thread, NULL, send_until_done,
				      restart ? &byte : NULL));
		printf("read %zd", read(pipe_ends[0], &byte, 1));
		printf(" interrupted %d\n", !restart && errno == EINTR);
		is_done = 1;
		CHECK(!pthread_join(thread, NULL));
	}
}

/* The handler changes the context: execution continues after the fault. */
static void on_skip(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
#if defined(__x86_64__)
	uc->uc_mcontext.gregs[REG_RIP] += 2; /* movb (%rdi), %al */
	uc->uc_mcontext.gregs[REG_RDI] = 99;
#elif defined(__aarch64__)
	uc->uc_mcontext.pc += 4;
	uc->uc_mcontext.regs[0] = 99;
#endif
	sigaddset(&uc->uc_sigmask, SIGUSR2);
}

static void case_context(void)
{
	long at = 0;

	set_action(SIGSEGV, on_skip, SA_SIGINFO);
	handlers_are_set();
#if defined(__x86_64__)
	__asm__ volatile("movb (%%rdi), %%al" : "+D"(at) : : "rax", "memory");
#elif defined(__aarch64__)
	__asm__ volatile("mov x0, %0\n"
			 "ldrb w2, [x0]\n"
			 "mov %0, x0"
			 : "+r"(at)
			 :
			 : "x0", "x2", "memory");
#endif
	printf("register %ld\n", at);
	print_blocked("blocked");
}

static void print_status(const char *what, int status)
{
	printf("%s exit %d signal %d core %d\n", what,
	       WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	       WIFSIGNALED(status) ? WTERMSIG(status) : 0,
	       WIFSIGNALED(status) && WCOREDUMP(status));
}

/* Children inherit the dispositions and change only their own. */
static void child_fork(void)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		print_action(SIGSEGV);
		CHECK(signal(SIGBUS, SIG_IGN) == SIG_DFL);
		print_action(SIGBUS);
		raise(SIGBUS);
		if (!sigsetjmp(jump, 1))
			load(NULL);
		CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
		load(NULL);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	print_status("fork", status);
	print_action(SIGSEGV);
	print_action(SIGBUS);
}

static void child_vfork(bool change)
{
	struct sigaction act = { .sa_handler = SIG_DFL }, old;
	int status;
	pid_t pid = vfork();

	if (!pid) {
		if (!change)
			_exit(raise(SIGBUS));
		if (sigaction(SIGSEGV, &act, &old) ||
		    old.sa_sigaction != on_info ||
		    sigaction(SIGSEGV, NULL, &old) || old.sa_handler != SIG_DFL)
			_exit(3);
		raise(SIGSEGV);
		_exit(4);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	print_status("vfork", status);
	print_action(SIGSEGV);
	print_action(SIGBUS);
}

static void child_vfork_once(void)
{
	int status;
	pid_t pid;

	set_action(SIGBUS, on_return, SA_SIGINFO | SA_RESETHAND);
	pid = vfork();
	if (!pid) {
		raise(SIGBUS);
		raise(SIGBUS);
		_exit(4);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	print_status("vfork", status);
	print_action(SIGBUS);
}

static void case_children(void)
{
	set_action(SIGSEGV, on_info, SA_SIGINFO);
	handlers_are_set();
	child_fork();
	child_vfork(true);
	child_vfork(false);
	child_vfork_once();
	/* the parent is as before */
	if (!sigsetjmp(jump, 1))
		load(NULL);
	printf("alive\n");
}

const struct signals_case same_cases[] = {
	CASE(signal),	     CASE(siginfo),
	CASE(no_savemask),   CASE(onstack),
	CASE(overflow),	     CASE(overflow_no_stack),
	CASE(resethand),     CASE(resethand_sent),
	CASE(nodefer),	     CASE(deferred),
	CASE(ignored_fault), CASE(ignored_sent),
	CASE(sent),	     CASE(pending),
	CASE(repair),	     CASE(ignored_pending),
	CASE(threads),	     CASE(mask),
	CASE(actions),	     CASE(old_functions),
	CASE(sigset),	     CASE(restart),
	CASE(context),	     CASE(children),
	{ NULL, NULL },
};
