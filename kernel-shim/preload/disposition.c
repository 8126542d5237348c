// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The program's dispositions of SIGSEGV and SIGBUS (disposition.h).
 *
 * Each is a seqlock with two copies: a change writes the copy that is not
 * current and then makes it current.  A reader, such as the signal handler,
 * takes no lock.  A thread that vanishes by fork(2) during a change leaves
 * the current copy as it is.
 *
 * Changes are serialized by a futex mutex.  It is held only with all signals
 * blocked, so that no signal handler can wait for the thread that it
 * interrupted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "disposition.h"
#include "nofault.h"
#include "shim.h"

/* Flags of the program's action that the kernel does not get unchanged. */
#define OWN_FLAGS (SA_SIGINFO | SA_RESETHAND | SA_NODEFER | SA_RESTART)

_Atomic int nofault_state;

/* copy[seq & 1] is current. */
struct seq_disposition {
	_Atomic uint32_t seq;
	struct {
		_Atomic uintptr_t handler, restorer;
		_Atomic uint64_t mask;
		_Atomic int flags;
	} copy[2];
};

static const int signals[] = { SIGSEGV, SIGBUS };
static struct seq_disposition dispositions[2];
/* the process that owns the dispositions */
static _Atomic pid_t owner;

static struct seq_disposition *disposition_of(int sig)
{
	return &dispositions[sig == SIGBUS];
}

static int next_sigaction(int sig, const struct sigaction *act,
			  struct sigaction *old)
{
	static _Atomic(void *) next;
	int (*fn)(int, const struct sigaction *, struct sigaction *);

	fn = (__typeof__(fn))shim_next(&next, "sigaction");
	return fn(sig, act, old);
}

/* A mutex of three states (Drepper, "Futexes Are Tricky"). */
enum { MUTEX_FREE, MUTEX_HELD, MUTEX_WAITERS };
static _Atomic uint32_t mutex;

static uint64_t mutex_lock(void)
{
	const uint64_t all = UINT64_MAX;
	uint32_t word = MUTEX_FREE;
	uint64_t mask;

	/* not pthread_sigmask(), which leaves out the signals of libc */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(mask));
	if (cas_acquire(&mutex, &word, MUTEX_HELD))
		return mask;
	while (exchange_acquire(&mutex, MUTEX_WAITERS) != MUTEX_FREE)
		futex_wait(&mutex, MUTEX_WAITERS, FUTEX_FOR_EVER);
	return mask;
}

static void mutex_unlock(uint64_t mask)
{
	if (exchange_acq_rel(&mutex, MUTEX_FREE) == MUTEX_WAITERS)
		futex_wake(&mutex, 1);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

static struct disposition disposition_read(int sig)
{
	struct seq_disposition *s = disposition_of(sig);
	struct disposition d;
	uint32_t seq;

	do {
		/* acquire: pairs with the release of disposition_write() */
		seq = load_acquire(&s->seq);
		d.handler = load_relaxed(&s->copy[seq & 1].handler);
		d.restorer = load_relaxed(&s->copy[seq & 1].restorer);
		d.mask = load_relaxed(&s->copy[seq & 1].mask);
		d.flags = load_relaxed(&s->copy[seq & 1].flags);
		/* pairs with the fence of disposition_write() */
		atomic_thread_fence(memory_order_acquire);
	} while (load_relaxed(&s->seq) != seq);
	return d;
}

/* The mutex is held. */
static void disposition_write(int sig, const struct disposition *d)
{
	struct seq_disposition *s = disposition_of(sig);
	const uint32_t seq = load_relaxed(&s->seq) + 1;

	/*
	 * release: if a reader loads a value that is stored below, it finds
	 * that seq has changed since this copy was the current one
	 */
	atomic_thread_fence(memory_order_release);
	store_relaxed(&s->copy[seq & 1].handler, d->handler);
	store_relaxed(&s->copy[seq & 1].restorer, d->restorer);
	store_relaxed(&s->copy[seq & 1].mask, d->mask);
	store_relaxed(&s->copy[seq & 1].flags, d->flags);
	store_release(&s->seq, seq);
}

static struct disposition from_sigaction(const struct sigaction *sa)
{
	struct disposition d = {
		.handler = (uintptr_t)sa->sa_handler,
		.restorer = (uintptr_t)sa->sa_restorer,
		.flags = sa->sa_flags,
	};

	memcpy(&d.mask, &sa->sa_mask, sizeof(d.mask));
	return d;
}

static struct sigaction to_sigaction(const struct disposition *d)
{
	struct sigaction sa = {
		.sa_handler = (sighandler_t)d->handler,
		.sa_restorer = (void (*)(void))d->restorer,
		.sa_flags = d->flags,
	};

	memcpy(&sa.sa_mask, &d->mask, sizeof(d->mask));
	return sa;
}

static bool is_ours(const struct sigaction *sa)
{
	return sa->sa_sigaction == nofault_handle;
}

/*
 * Set the action of the kernel for the program's disposition @d: the handler,
 * with the flags and the mask that @d has.  The kernel never gets
 * SA_RESETHAND.  It gets SA_NODEFER only for a handler of the program: a
 * signal that nofault_handle() sends again must stay pending until it
 * returns.  With SA_RESTART an ignored signal interrupts fewer system calls.
 *
 * Return @d as sigaction(2) would report it: the kernel drops unknown flags
 * and signals that cannot be blocked, and libc adds flags.
 */
static struct disposition kernel_set(int sig, const struct disposition *d)
{
	struct sigaction sa = to_sigaction(d), back;
	struct disposition reported;

	sa.sa_sigaction = nofault_handle;
	sa.sa_flags &= ~OWN_FLAGS;
	sa.sa_flags |= SA_SIGINFO;
	if (disposition_is_handler(d->handler))
		sa.sa_flags |= d->flags & (SA_NODEFER | SA_RESTART);
	else
		sa.sa_flags |= SA_RESTART;
	if (next_sigaction(sig, &sa, NULL) || next_sigaction(sig, NULL, &back))
		return *d;
	reported = from_sigaction(&back);
	reported.handler = d->handler;
	reported.flags &= ~OWN_FLAGS;
	reported.flags |= d->flags & OWN_FLAGS;
	return reported;
}

bool disposition_is_owned(void)
{
	return load_relaxed(&owner) == getpid();
}

/*
 * The call for the action of the kernel.  If that was nofault_handle(),
 * *old is the program's disposition.
 */
static int kernel_action(int sig, const struct sigaction *act,
			 struct sigaction *old)
{
	struct disposition d;
	const int ret = next_sigaction(sig, act, old);

	if (!ret && is_ours(old)) {
		d = disposition_read(sig);
		*old = to_sigaction(&d);
	}
	return ret;
}

/*
 * Discard signals that are pending for this thread and for the process, as
 * the kernel does for SIG_IGN.  They are blocked: the mutex is held.
 */
static void discard_pending(int sig)
{
	const uint64_t set = 1ull << (sig - 1);
	const struct timespec no_time = { 0 };
	const int saved = errno;
	int i;

	/* at most one is pending for each */
	for (i = 0; i < 2; i++)
		syscall(SYS_rt_sigtimedwait, &set, NULL, &no_time, sizeof(set));
	errno = saved;
}

/*
 * The mutex is held.  If @act has nofault_handle(), the program has read it
 * by a direct system call, and the disposition remains.
 */
static int program_action(int sig, const struct sigaction *act,
			  struct sigaction *old)
{
	struct disposition d = disposition_read(sig);

	if (load_relaxed(&nofault_state) != NOFAULT_ON)
		return kernel_action(sig, act, old);
	*old = to_sigaction(&d);
	if (act && !is_ours(act)) {
		d = from_sigaction(act);
		d = kernel_set(sig, &d);
		disposition_write(sig, &d);
		if (d.handler == (uintptr_t)SIG_IGN)
			discard_pending(sig);
	}
	return 0;
}

int disposition_action(int sig, const struct sigaction *act,
		       struct sigaction *old)
{
	struct sigaction new, was;
	uint64_t mask;
	int ret;

	/* *act and *old may fault: not while the mutex is held */
	if (act) {
		new = *act;
		act = &new;
	}
	if (disposition_is_owned()) {
		mask = mutex_lock();
		ret = program_action(sig, act, &was);
		mutex_unlock(mask);
	} else {
		ret = kernel_action(sig, act, &was);
	}
	if (!ret && old)
		*old = was;
	return ret;
}

/* Like the kernel, keep the flags and the mask. */
static struct disposition disposition_take_once(int sig)
{
	struct disposition d, reset;
	const uint64_t mask = mutex_lock();

	d = disposition_read(sig);
	if ((d.flags & SA_RESETHAND) && disposition_is_handler(d.handler)) {
		reset = d;
		reset.handler = (uintptr_t)SIG_DFL;
		disposition_write(sig, &reset);
	}
	mutex_unlock(mask);
	return d;
}

struct disposition disposition_take(int sig)
{
	struct disposition d = disposition_read(sig);

	if (!(d.flags & SA_RESETHAND) || !disposition_is_handler(d.handler))
		return d;
	if (disposition_is_owned())
		return disposition_take_once(sig);
	disposition_reset(sig);
	return d;
}

void disposition_reset(int sig)
{
	struct disposition d = disposition_read(sig);
	struct sigaction sa;
	const int saved = errno;

	d.handler = (uintptr_t)SIG_DFL;
	sa = to_sigaction(&d);
	next_sigaction(sig, &sa, NULL);
	errno = saved;
}

bool disposition_is_installed(void)
{
	const int saved = errno;
	struct sigaction sa;
	bool is = true;
	int i;

	for (i = 0; i < 2 && is; i++)
		is = !next_sigaction(signals[i], NULL, &sa) && is_ours(&sa);
	errno = saved;
	return is;
}

/*
 * In the child of fork(2).  The kernel copies the actions before the memory.
 * If another thread of the parent changed or installed an action meanwhile,
 * it is not that of the disposition.
 */
static void after_fork_child(void)
{
	const int saved = errno, state = load_relaxed(&nofault_state);
	struct disposition d;
	struct sigaction sa;
	int i;

	store_relaxed(&owner, getpid());
	store_relaxed(&mutex, MUTEX_FREE);
	for (i = 0; i < 2; i++) {
		d = disposition_read(signals[i]);
		if (next_sigaction(signals[i], NULL, &sa) || !is_ours(&sa))
			continue;
		if (state == NOFAULT_ON) {
			kernel_set(signals[i], &d);
		} else if (state == NOFAULT_OFF) {
			sa = to_sigaction(&d);
			next_sigaction(signals[i], &sa, NULL);
		}
	}
	if (state == NOFAULT_ON && !disposition_is_installed())
		nofault_end();
	errno = saved;
}

static bool has_fork_handler;

static void fork_handler_add(void)
{
	has_fork_handler = !pthread_atfork(NULL, NULL, after_fork_child);
}

/* The mutex is held.  The disposition is stored before the handler runs. */
static void install(void)
{
	struct disposition d;
	struct sigaction sa;
	int i;

	store_relaxed(&owner, getpid());
	for (i = 0; i < 2; i++) {
		if (next_sigaction(signals[i], NULL, &sa) || is_ours(&sa))
			break;
		d = from_sigaction(&sa);
		disposition_write(signals[i], &d);
		kernel_set(signals[i], &d);
	}
	/*
	 * An interposer of sigaction(2) may have ignored the calls
	 * (AddressSanitizer with handle_segv=2)
	 */
	store_release(&nofault_state,
		      disposition_is_installed() ? NOFAULT_ON : NOFAULT_LOST);
}

bool disposition_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct sigaction sa;
	uint64_t mask;
	int state;

	/* the mutex may have been copied as held by _Fork(3) */
	if (load_acquire(&nofault_state) && !disposition_is_owned())
		return false;
	pthread_once(&once, fork_handler_add);
	/* resolve sigaction() before signals are blocked */
	if (!has_fork_handler || next_sigaction(SIGSEGV, NULL, &sa))
		return false;
	mask = mutex_lock();
	if (!load_relaxed(&nofault_state))
		install();
	state = load_relaxed(&nofault_state);
	mutex_unlock(mask);
	return state == NOFAULT_ON;
}
