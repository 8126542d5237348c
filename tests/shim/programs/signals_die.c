// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Cases of shim-signals that die of SIGSEGV or SIGBUS.  Their wait status,
 * core and output must not depend on urxe.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "signals.h"

static void print_info(int sig, const siginfo_t *info)
{
	printf("signal %d code %d", sig, info->si_code);
	if (info->si_code > 0)
		printf(" at %p", info->si_addr);
	printf("\n");
}

static void on_exit_status(int sig, siginfo_t *info, void *context)
{
	(void)context;
	print_info(sig, info);
	_exit(sig);
}

static void case_null(void)
{
	handlers_are_set();
	load(NULL);
}

static void case_read_only(void)
{
	char *at = map_page(PROT_READ);

	handlers_are_set();
	store(at);
}

static void case_past_end(void)
{
	char *at = map_past_end();

	handlers_are_set();
	load(at);
}

static void case_raise(void)
{
	handlers_are_set();
	raise(SIGSEGV);
}

static void case_kill(void)
{
	handlers_are_set();
	kill(getpid(), SIGBUS);
	/* the signal may arrive in another thread */
	for (;;)
		pause();
}

static void case_queue(void)
{
	const union sigval value = { .sival_int = 42 };

	handlers_are_set();
	sigqueue(getpid(), SIGSEGV, value);
	for (;;)
		pause();
}

static void case_raise_nodefer(void)
{
	set_action(SIGSEGV, SIG_DFL, SA_NODEFER);
	handlers_are_set();
	raise(SIGSEGV);
}

static void case_jump(void)
{
	void (*volatile fn)(void) = NULL;

	handlers_are_set();
	fn();
}

static void case_blocked(void)
{
	sigset_t set;

	set_action(SIGSEGV, on_exit_status, SA_SIGINFO);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	handlers_are_set();
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	load(NULL);
}

static void *fault_in_thread(void *arg)
{
	load(arg);
	return NULL;
}

static void case_thread(void)
{
	pthread_t thread;

	handlers_are_set();
	CHECK(!pthread_create(&thread, NULL, fault_in_thread, NULL));
	pthread_join(thread, NULL);
}

/* A crash reporter: restore the default and return, or send it again */
static void on_report(int sig, siginfo_t *info, void *context)
{
	(void)context;
	print_info(sig, info);
	CHECK((void *)signal(sig, SIG_DFL) == (void *)on_report);
	if (info->si_code <= 0)
		raise(sig);
}

static void case_report(void)
{
	set_action(SIGSEGV, on_report, SA_SIGINFO);
	handlers_are_set();
	load(NULL);
}

static void case_report_sent(void)
{
	set_action(SIGSEGV, on_report, SA_SIGINFO);
	handlers_are_set();
	raise(SIGSEGV);
}

#if defined(__x86_64__)
#define NOT_CANONICAL ((char *)0x8000000000000000ull)

static void case_not_canonical(void)
{
	handlers_are_set();
	load(NOT_CANONICAL);
}

static void case_not_canonical_handler(void)
{
	set_action(SIGSEGV, on_exit_status, SA_SIGINFO);
	handlers_are_set();
	load(NOT_CANONICAL);
}

/* The overflow trap: SIGSEGV, although the instruction has ended */
static void trap(void)
{
	__asm__ volatile("int $4");
}

static void case_trap(void)
{
	handlers_are_set();
	trap();
	printf("alive\n");
}

static void case_trap_ignored(void)
{
	CHECK(signal(SIGSEGV, SIG_IGN) != SIG_ERR);
	handlers_are_set();
	trap();
	printf("alive\n");
}

static void on_return(int sig, siginfo_t *info, void *context)
{
	(void)context;
	print_info(sig, info);
}

static void case_trap_handler(void)
{
	set_action(SIGSEGV, on_return, SA_SIGINFO);
	handlers_are_set();
	trap();
	printf("alive\n");
}
#endif

/* Found by AddressSanitizer */
#if defined(__x86_64__)
/* A crash reporter that sends the siginfo of a fault again, later */
static siginfo_t saved_info;
static sigjmp_buf after;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	print_info(sig, info);
	saved_info = *info;
	siglongjmp(after, 1);
}

static void case_resent(void)
{
	set_action(SIGSEGV, on_fault, SA_SIGINFO);
	handlers_are_set();
	if (!sigsetjmp(after, 1))
		load(NULL);
	CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
	syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGSEGV,
		&saved_info);
	printf("alive\n");
}
#endif

static void case_use_after_free(void)
{
	char *volatile at = malloc(10);

	CHECK(at);
	handlers_are_set();
	free(at);
	load(at);
}

static void case_overflow_default(void)
{
	handlers_are_set();
	overflow(NULL);
}

const struct signals_case die_cases[] = {
	CASE(null),	      CASE(read_only),
	CASE(past_end),	      CASE(raise),
	CASE(kill),	      CASE(queue),
	CASE(raise_nodefer),  CASE(jump),
	CASE(blocked),	      CASE(thread),
	CASE(report),	      CASE(report_sent),
#if defined(__x86_64__)
	CASE(not_canonical),  CASE(not_canonical_handler),
	CASE(trap),	      CASE(trap_ignored),
	CASE(trap_handler),   CASE(resent),
#endif
	CASE(use_after_free), CASE(overflow_default),
	{ NULL, NULL },
};
