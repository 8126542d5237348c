// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The handler of SIGSEGV and SIGBUS (nofault.h), and urxe_nofault(), by which
 * the provider requests it (base/nofault.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/nofault.h"
#include "disposition.h"
#include "nofault.h"
#include "shim.h"

/* asynchronous tag check of aarch64, which older headers lack */
#define MTE_ASYNC 8

#if defined(__x86_64__)
#define SUPPORTED true
typedef greg_t word_t;
#define PC(uc) ((uc)->uc_mcontext.gregs[REG_RIP])
#define SECOND_RESULT(uc) ((uc)->uc_mcontext.gregs[REG_RDX])
/* The instruction SYSCALL copies RIP to RCX. */
#define IS_AFTER_SYSCALL(uc) \
	((uc)->uc_mcontext.gregs[REG_RIP] == (uc)->uc_mcontext.gregs[REG_RCX])
#elif defined(__aarch64__)
#define SUPPORTED true
typedef unsigned long long word_t;
#define PC(uc) ((uc)->uc_mcontext.pc)
#define SECOND_RESULT(uc) ((uc)->uc_mcontext.regs[1])
#else
#define SUPPORTED false
#endif
#ifndef IS_AFTER_SYSCALL
#define IS_AFTER_SYSCALL(uc) ((void)(uc), false)
#endif

/* One is the provider's; a test has another.  Constant after the store. */
#define SECTIONS_MAX 4
static _Atomic(const struct nofault_section *) sections[SECTIONS_MAX];

/* The cause of a signal. */
enum cause {
	/* A process, or the kernel for an event that no instruction caused */
	CAUSE_SENT,
	/*
	 * The kernel sent it for this thread, and would send no other one if
	 * the handler returned
	 */
	CAUSE_FORCED,
	/* An instruction, which causes the signal again when it is repeated */
	CAUSE_FAULT,
};

/*
 * Return true for a general protection fault and the like, for which the
 * kernel gives no address.  SI_KERNEL without one of them is a trap such as
 * INTO, or an error such as a damaged signal frame.
 */
static bool is_protection_fault(const ucontext_t *uc)
{
#if defined(__x86_64__)
	const long long trap = uc->uc_mcontext.gregs[REG_TRAPNO];

	return trap == 11 || trap == 12 || trap == 13; /* #NP, #SS, #GP */
#else
	(void)uc;
	return false;
#endif
}

static enum cause signal_cause(int sig, const siginfo_t *info,
			       const ucontext_t *uc)
{
	if (info->si_code <= 0 ||
	    (sig == SIGBUS && info->si_code == BUS_MCEERR_AO) ||
	    (sig == SIGSEGV && info->si_code == MTE_ASYNC))
		return CAUSE_SENT;
	if (info->si_code == SI_KERNEL && !is_protection_fault(uc))
		return CAUSE_FORCED;
	return CAUSE_FAULT;
}

/*
 * Return the address at which to resume after a fault at @pc; 0: it is not of
 * the section.
 */
static uintptr_t section_find(const struct nofault_section *s, uintptr_t pc)
{
	const struct nofault_entry *e;

	if (pc >= (uintptr_t)s->begin && pc < (uintptr_t)s->end)
		return (uintptr_t)s->fixup;
	for (e = s->table; e < s->table_end; e++)
		if ((uintptr_t)&e->instruction + (intptr_t)e->instruction == pc)
			return (uintptr_t)&e->resume + (intptr_t)e->resume;
	return 0;
}

/* Resume where the section that has the instruction says. */
static bool nofault_resume(int sig, const siginfo_t *info, ucontext_t *uc)
{
#if SUPPORTED
	uintptr_t resume;
	const uintptr_t pc = (uintptr_t)PC(uc);
	const struct nofault_section *s;
	const void *at = NULL;
	int i;

	for (i = 0; i < SECTIONS_MAX; i++) {
		/* acquire: pairs with section_add() */
		s = load_acquire(&sections[i]);
		if (!s)
			return false;
		resume = section_find(s, pc);
		if (!resume)
			continue;
		if (signal_cause(sig, info, uc) != CAUSE_FAULT)
			return false;
		if (info->si_code != SI_KERNEL)
			at = info->si_addr;
		PC(uc) = (word_t)resume;
		if (resume == (uintptr_t)s->fixup)
			SECOND_RESULT(uc) = (word_t)(uintptr_t)at;
		return true;
	}
#else
	(void)sig;
	(void)info;
	(void)uc;
#endif
	return false;
}

void nofault_end(void)
{
	const struct nofault_section *s;
	int i;

	/* seq_cst: either this loop or section_add() sees the other (Dekker) */
	store_seq_cst(&nofault_state, NOFAULT_LOST);
	for (i = 0; i < SECTIONS_MAX; i++) {
		s = load_seq_cst(&sections[i]);
		if (s)
			store_seq_cst(s->installed, 0);
	}
}

/*
 * Let the process die of the signal as it would without the handler.  After a
 * fault the instruction causes the signal again, and the kernel logs it.
 * Another signal is sent again with the same siginfo.  It is blocked, and so
 * arrives when the handler has returned and the mask and the registers are
 * those of the program.  That is done for a fault, too, if it may be the
 * siginfo of an earlier one that the program has sent to itself.
 *
 * Some processes survive: the first process of a PID namespace ignores
 * signals that are sent to it.
 */
static void signal_die(int sig, siginfo_t *info, const ucontext_t *uc)
{
	const uint64_t all = UINT64_MAX;
	const pid_t pid = getpid(), tid = (pid_t)syscall(SYS_gettid);

	/* undone by the return from the handler */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	/* not in a child of vfork(2), which would change its parent */
	if (disposition_is_owned())
		nofault_end();
	disposition_reset(sig);
	if ((signal_cause(sig, info, uc) != CAUSE_FAULT ||
	     IS_AFTER_SYSCALL(uc)) &&
	    syscall(SYS_rt_tgsigqueueinfo, pid, tid, sig, info))
		syscall(SYS_tgkill, pid, tid, sig);
}

typedef void signal_handler(int sig, siginfo_t *info, void *context);

/*
 * Return the program's handler, which the caller has to call, or apply
 * another disposition and return NULL.
 */
__attribute__((noinline)) static signal_handler *
program_handler(int sig, siginfo_t *info, const ucontext_t *uc)
{
	const enum cause cause = signal_cause(sig, info, uc);
	const int saved = errno;
	const struct disposition d = disposition_take(sig);

	if (disposition_is_handler(d.handler)) {
		/*
		 * The kernel has blocked the signal for the time of the
		 * handler.  It stays blocked if the handler leaves by
		 * longjmp(3) or changes the mask in the context.
		 */
		nofault_blocked();
		errno = saved;
		return (signal_handler *)d.handler;
	}
	/* the kernel does not ignore a signal that it forces */
	if (d.handler == (uintptr_t)SIG_DFL || cause != CAUSE_SENT)
		signal_die(sig, info, uc);
	errno = saved;
	return NULL;
}

static bool thread_is_urxe(void)
{
	const struct nofault_section *s;
	int i;

	for (i = 0; i < SECTIONS_MAX; i++) {
		s = load_acquire(&sections[i]);
		if (!s)
			return false;
		if (s->self()->is_urxe)
			return true;
	}
	return false;
}

/*
 * A signal that was sent to the process has arrived in a thread of the
 * provider, because each thread of the program blocks it or is about to take
 * another signal.  Block it in this thread, and send it again with the same
 * siginfo: it arrives in another thread, or stays pending until a thread
 * unblocks it or calls sigwait(3).  It stays blocked here, or this thread
 * would take it again.
 */
__attribute__((noinline)) static bool signal_leave(int sig, siginfo_t *info,
						   ucontext_t *uc)
{
	const int saved = errno;
	uint64_t all = UINT64_MAX;

	if (signal_cause(sig, info, uc) != CAUSE_SENT || !thread_is_urxe())
		return false;
	/* undone by the return from the handler */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	sigaddset(&uc->uc_sigmask, sig);
	nofault_blocked();
	if (syscall(SYS_rt_sigqueueinfo, getpid(), sig, info))
		kill(getpid(), sig);
	errno = saved;
	return true;
}

/*
 * The last call is a jump, so the stack of the program's handler is the same
 * as without this one.
 */
void nofault_handle(int sig, siginfo_t *info, void *context)
{
	signal_handler *handler;

	if (nofault_resume(sig, info, context) ||
	    signal_leave(sig, info, context))
		return;
	handler = program_handler(sig, info, context);
	if (handler)
		handler(sig, info, context);
}

void nofault_blocked(void)
{
	const struct nofault_section *s;
	int i;

	for (i = 0; i < SECTIONS_MAX; i++) {
		s = load_acquire(&sections[i]);
		if (!s)
			return;
		s->self()->unblocked = false;
	}
}

static bool section_is_known(const struct nofault_section *s)
{
	int i;

	for (i = 0; i < SECTIONS_MAX; i++)
		if (load_acquire(&sections[i]) == s)
			return true;
	return false;
}

/* False: all entries are in use. */
static bool section_add(const struct nofault_section *s)
{
	const struct nofault_section *none;
	uint32_t zero = 0;
	int i;

	for (i = 0; i < SECTIONS_MAX; i++) {
		none = NULL;
		/* seq_cst: see nofault_end() */
		if (cas_seq_cst(&sections[i], &none, s) || none == s)
			break;
	}
	if (i == SECTIONS_MAX)
		return false;
	/* another thread may have added the section */
	cas_seq_cst(s->installed, &zero, 1);
	if (load_seq_cst(&nofault_state) == NOFAULT_ON)
		return true;
	store_seq_cst(s->installed, 0);
	return false;
}

static bool is_wanted(void)
{
	const char *value = getenv("URXE_FAULT_HANDLER");

	return SUPPORTED && !(value && !strcmp(value, "0"));
}

nofault_install_fn urxe_nofault __attribute__((visibility("default")));
bool urxe_nofault(const struct nofault_section *s)
{
	const int saved = errno;
	bool ok = false;

	if (section_is_known(s)) {
		ok = load_acquire(&nofault_state) == NOFAULT_ON;
		if (ok && !disposition_is_installed()) {
			nofault_end();
			ok = false;
		}
	} else {
		ok = is_wanted() && disposition_install() && section_add(s);
		if (!ok)
			store_relaxed(s->installed, 0);
	}
	errno = saved;
	return ok;
}
