// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that is removed while it is registered, in a thread that begins to
 * block SIGSEGV and SIGBUS after it has used the QP; and signals that are sent
 * to a process with threads of the provider.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "vanish.h"

/* How the thread blocks the signals. */
enum block { BLOCK_MASK, BLOCK_JUMP, BLOCK_HANDLER, BLOCK_CONTEXT, BLOCKS };

static sigjmp_buf point;

static void leave_handler(int sig)
{
	(void)sig;
	longjmp(point, 1);
}

static void mask_set(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGBUS);
	ck_ok(pthread_sigmask(how, &set, NULL));
}

/* A jump restores the mask that it has saved, with both signals blocked. */
static void block_by_jump(void)
{
	mask_set(SIG_BLOCK);
	if (sigsetjmp(point, 1))
		return;
	mask_set(SIG_UNBLOCK);
	siglongjmp(point, 1);
}

/* A jump out of a handler that runs with both signals blocked. */
static void block_by_handler(void)
{
	struct sigaction act = { .sa_handler = leave_handler };

	sigfillset(&act.sa_mask);
	ck_ok(sigaction(SIGUSR1, &act, NULL));
	if (!sigsetjmp(point, 0))
		raise(SIGUSR1);
}

static void block_by_context(void)
{
	volatile bool was_here = false;
	ucontext_t here;

	mask_set(SIG_BLOCK);
	ck_ok(getcontext(&here));
	if (was_here)
		return;
	was_here = true;
	mask_set(SIG_UNBLOCK);
	setcontext(&here);
}

static void block(enum block how)
{
	sigset_t set;

	switch (how) {
	case BLOCK_MASK:
		mask_set(SIG_BLOCK);
		break;
	case BLOCK_JUMP:
		block_by_jump();
		break;
	case BLOCK_HANDLER:
		block_by_handler();
		break;
	default:
		block_by_context();
	}
	ck_ok(pthread_sigmask(SIG_BLOCK, NULL, &set));
	ck_assert(sigismember(&set, SIGSEGV) && sigismember(&set, SIGBUS));
}

static void unblock(void)
{
	sigset_t none;

	sigemptyset(&none);
	ck_ok(pthread_sigmask(SIG_SETMASK, &none, NULL));
}

/* Use the QP, block the signals, and send from memory that is gone. */
static void send_blocked(struct duo *d, enum ibv_wr_opcode op, uint32_t len,
			 enum block how)
{
	exchange_once(d);
	vanish(d, MINE, WAY_UNMAP, MESSAGE, PAGE);
	if (op == IBV_WR_SEND)
		b_recv(d, 2, SPAN / 2, len);
	block(how);
	ck_ok(post(d, op, 2, MESSAGE, len, SPAN / 2, 0));
	expect(d->a.scq, 2, IBV_WC_LOC_PROT_ERR);
	unblock();
	ck_assert_int_eq(b_state(d), IBV_QPS_RTS);
	restore(d, MINE);
	duo_renew(d);
}

START_TEST(after_use)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND,
						  IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };
	static const uint32_t lengths[] = { 8, 64, 1000, 2 * PAGE, MIDDLE };
	struct opts o = default_opts();
	struct duo d;
	int i;

	if (under_adoption())
		return;
	vanish_open(&d, _i / BLOCKS, KIND_PRIVATE, KIND_PRIVATE, &o);
	for (i = 0; i < 15; i++)
		send_blocked(&d, ops[i % 3], lengths[i / 3], _i % BLOCKS);
	exchange_once(&d);
	vanish_close(&d);
}
END_TEST

static void on_signal(int sig)
{
	(void)sig;
	_exit(1);
}

/*
 * Signals that are sent to the process while its threads block them remain
 * pending until they are waited for: threads of the provider do not take
 * them.
 */
START_TEST(pending)
{
	const int signals[] = { SIGSEGV, SIGBUS };
	struct opts o = default_opts();
	union sigval value;
	siginfo_t info;
	sigset_t set;
	struct duo d;
	int i;

	o.channel = true;
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_req_notify_cq(d.b.rcq, 0)); /* starts a thread */
	ck_assert_int_gt(count_threads(), 1);
	signal(SIGSEGV, on_signal);
	signal(SIGBUS, on_signal);
	mask_set(SIG_BLOCK);
	for (i = 0; i < 2; i++) {
		value.sival_int = 5 + i;
		ck_ok(sigqueue(getpid(), signals[i], value));
		sleep_ms(QUIET_MS);
		sigemptyset(&set);
		sigaddset(&set, signals[i]);
		ck_assert_int_eq(sigwaitinfo(&set, &info), signals[i]);
		ck_assert_int_eq(info.si_code, SI_QUEUE);
		ck_assert_int_eq(info.si_value.sival_int, 5 + i);
	}
	unblock();
	exchange_once(&d);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("vanish_blocked");

	add_loop(s, after_use, WHERE_COUNT * BLOCKS);
	add(s, pending);
	return run(s);
}
