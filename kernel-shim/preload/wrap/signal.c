// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wrappers of the functions that set signal actions and signal masks.  While
 * the handler of SIGSEGV and SIGBUS is installed (preload/nofault.h), the
 * program sets and sees only its own dispositions of these two
 * (preload/disposition.h).  A call that may block one of them in the calling
 * thread is reported to the handler.  All other calls are forwarded.
 *
 * Functions of libc do not call each other through the wrappers, so each
 * function that changes an action or a mask has one.  Semantics that libc
 * implements itself, such as those of sigset(3), are implemented here as in
 * glibc.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include "preload/disposition.h"
#include "preload/nofault.h"
#include "wrap.h"

#ifndef SA_INTERRUPT /* musl */
#define SA_INTERRUPT 0x20000000
#endif

#define BIT(sig) (1u << ((sig)-1))

/* Signals for which siginterrupt(3) turned SA_RESTART off: a set of BIT(). */
static _Atomic unsigned int interrupting;

WRAP(int, sigaction,
     (int sig, const struct sigaction *act, struct sigaction *old))
{
	if (!disposition_is_kept(sig))
		return NEXT(sigaction)(sig, act, old);
	return disposition_action(sig, act, old);
}

WRAP(int, __sigaction,
     (int sig, const struct sigaction *act, struct sigaction *old))
{
	if (!disposition_is_kept(sig))
		return NEXT(__sigaction)(sig, act, old);
	return disposition_action(sig, act, old);
}

/* Set the handler and return the previous one, or SIG_ERR. */
static sighandler_t handler_set(int sig, sighandler_t handler, int blocked,
				int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags };
	struct sigaction old;

	sigemptyset(&act.sa_mask);
	if (blocked)
		sigaddset(&act.sa_mask, blocked);
	return disposition_action(sig, &act, &old) ? SIG_ERR : old.sa_handler;
}

static bool is_kept(int sig, sighandler_t handler)
{
	return disposition_is_kept(sig) && handler != SIG_ERR;
}

static int restart_flag(int sig)
{
	return load_relaxed(&interrupting) & BIT(sig) ? 0 : SA_RESTART;
}

#define WRAP_BSD_SIGNAL(name)                                             \
	WRAP(sighandler_t, name, (int sig, sighandler_t handler))         \
	{                                                                 \
		if (!is_kept(sig, handler))                               \
			return NEXT(name)(sig, handler);                  \
		return handler_set(sig, handler, sig, restart_flag(sig)); \
	}
WRAP_BSD_SIGNAL(signal)
WRAP_BSD_SIGNAL(bsd_signal)
WRAP_BSD_SIGNAL(ssignal)

#define SYSV_FLAGS (SA_RESETHAND | SA_NODEFER | SA_INTERRUPT)
#define WRAP_SYSV_SIGNAL(name)                                    \
	WRAP(sighandler_t, name, (int sig, sighandler_t handler)) \
	{                                                         \
		if (!is_kept(sig, handler))                       \
			return NEXT(name)(sig, handler);          \
		return handler_set(sig, handler, 0, SYSV_FLAGS);  \
	}
WRAP_SYSV_SIGNAL(__sysv_signal)
WRAP_SYSV_SIGNAL(sysv_signal)

WRAP(int, sigignore, (int sig))
{
	if (!disposition_is_kept(sig))
		return NEXT(sigignore)(sig);
	return handler_set(sig, SIG_IGN, 0, 0) == SIG_ERR ? -1 : 0;
}

WRAP(int, siginterrupt, (int sig, int interrupt))
{
	struct sigaction act;

	if (sig == SIGSEGV || sig == SIGBUS) {
		if (interrupt)
			atomic_fetch_or_explicit(&interrupting, BIT(sig),
						 memory_order_relaxed);
		else
			atomic_fetch_and_explicit(&interrupting, ~BIT(sig),
						  memory_order_relaxed);
	}
	if (!disposition_is_kept(sig))
		return NEXT(siginterrupt)(sig, interrupt);
	if (disposition_action(sig, NULL, &act))
		return -1;
	act.sa_flags &= ~SA_RESTART;
	act.sa_flags |= restart_flag(sig);
	return disposition_action(sig, &act, NULL);
}

/* A call that set or extended the signal mask with @set has succeeded. */
static void mask_changed(int how, const sigset_t *set)
{
	if (how != SIG_UNBLOCK && set &&
	    (sigismember(set, SIGSEGV) == 1 || sigismember(set, SIGBUS) == 1))
		nofault_blocked();
}

#define WRAP_SIGMASK(name)                                             \
	WRAP(int, name, (int how, const sigset_t *set, sigset_t *old)) \
	{                                                              \
		int ret;                                               \
                                                                       \
		if (!load_acquire(&nofault_state))                     \
			return NEXT(name)(how, set, old);              \
		ret = NEXT(name)(how, set, old);                       \
		if (!ret)                                              \
			mask_changed(how, set);                        \
		return ret;                                            \
	}
WRAP_SIGMASK(sigprocmask)
WRAP_SIGMASK(pthread_sigmask)

WRAP(int, sighold, (int sig))
{
	int ret;

	if (!disposition_is_kept(sig))
		return NEXT(sighold)(sig);
	ret = NEXT(sighold)(sig);
	if (!ret)
		nofault_blocked();
	return ret;
}

/* The mask of 4.3BSD has the first 32 signals. */
#define WRAP_BSD_MASK(name)                                               \
	WRAP(int, name, (int mask))                                       \
	{                                                                 \
		int old;                                                  \
                                                                          \
		if (!load_acquire(&nofault_state) ||                      \
		    !((unsigned int)mask & (BIT(SIGSEGV) | BIT(SIGBUS)))) \
			return NEXT(name)(mask);                          \
		old = NEXT(name)(mask);                                   \
		nofault_blocked();                                        \
		return old;                                               \
	}
WRAP_BSD_MASK(sigblock)
WRAP_BSD_MASK(sigsetmask)

/* Block the signal, and return its handler, or SIG_HOLD if it was blocked. */
static sighandler_t handler_hold(int sig)
{
	struct sigaction act;
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, sig);
	if (NEXT(sigprocmask)(SIG_BLOCK, &set, &old))
		return SIG_ERR;
	nofault_blocked();
	if (sigismember(&old, sig) == 1)
		return SIG_HOLD;
	return disposition_action(sig, NULL, &act) ? SIG_ERR : act.sa_handler;
}

/* glibc accepts SIG_ERR as a handler. */
WRAP(sighandler_t, sigset, (int sig, sighandler_t handler))
{
	struct sigaction act = { .sa_handler = handler }, was;
	sigset_t set, old;

	if (!disposition_is_kept(sig))
		return NEXT(sigset)(sig, handler);
	if (handler == SIG_HOLD)
		return handler_hold(sig);
	sigemptyset(&act.sa_mask);
	if (disposition_action(sig, &act, &was))
		return SIG_ERR;
	sigemptyset(&set);
	sigaddset(&set, sig);
	if (NEXT(sigprocmask)(SIG_UNBLOCK, &set, &old))
		return SIG_ERR;
	return sigismember(&old, sig) == 1 ? SIG_HOLD : was.sa_handler;
}

/*
 * A jump may restore a mask with one of the signals.  If it leaves a signal
 * handler without restoring the mask, those that the kernel blocked for the
 * handler stay blocked.
 */
#define WRAP_JUMP(name)                                                      \
	WRAP(__attribute__((noreturn)) void, name, (jmp_buf env, int value)) \
	{                                                                    \
		nofault_blocked();                                           \
		NEXT(name)(env, value);                                      \
		__builtin_unreachable();                                     \
	}
WRAP_JUMP(longjmp)
WRAP_JUMP(_longjmp)
WRAP_JUMP(siglongjmp)
WRAP_JUMP(__longjmp_chk)

WRAP(int, setcontext, (const ucontext_t *to))
{
	nofault_blocked();
	return NEXT(setcontext)(to);
}

WRAP(int, swapcontext, (ucontext_t * from, const ucontext_t *to))
{
	nofault_blocked();
	return NEXT(swapcontext)(from, to);
}

/*
 * Resolve libc's functions in advance: signal handlers may call them, and
 * dlsym may allocate.
 */
__attribute__((constructor)) static void signal_resolve(void)
{
#define RESOLVE(name) shim_next(&next_##name, #name)
	RESOLVE(sigaction);
	RESOLVE(__sigaction);
	RESOLVE(signal);
	RESOLVE(bsd_signal);
	RESOLVE(ssignal);
	RESOLVE(__sysv_signal);
	RESOLVE(sysv_signal);
	RESOLVE(sigignore);
	RESOLVE(siginterrupt);
	RESOLVE(sigprocmask);
	RESOLVE(pthread_sigmask);
	RESOLVE(sighold);
	RESOLVE(sigblock);
	RESOLVE(sigsetmask);
	RESOLVE(sigset);
	RESOLVE(longjmp);
	RESOLVE(_longjmp);
	RESOLVE(siglongjmp);
	RESOLVE(__longjmp_chk);
	RESOLVE(setcontext);
	RESOLVE(swapcontext);
#undef RESOLVE
}
