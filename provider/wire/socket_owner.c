// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Election of the socket owner, and its thread, see socket_owner.h. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "engine/copy/nofault.h"
#include "engine/core/idle.h"
#include "engine/core/log.h"
#include "socket_owner.h"
#include "wire/requester/budget.h"
#include "wire/requester/completer.h"
#include "wire/responder/server.h"
#include "wire/address.h"

/*
 * Retry period of candidates.  Nothing wakes a candidate when the socket
 * owner is stopped.
 */
#define RETRY_NS 100000000ull
/*
 * Idle time after which the socket owner drops stale QPs and rechecks its
 * ownership.
 */
#define IDLE_NS 1000000000ull
/*
 * Failed binds before a message is printed: an ending process may still have
 * the port.
 */
#define BIND_FAILURES_MAX 20
/* Busy rounds of the own socket between two calls of socket_owner_busy(). */
#define BUSY_ROUNDS 16

/*
 * Receiving by pollers, see socket_owner.h.  The thread takes a poller for
 * active for RECENT_NS after its last try to receive, or YIELD_NS if it yields
 * since, and naps meanwhile, each time twice as long.  A thread that leaves
 * idle_yield() by longjmp(3) seems to yield for ever: hence YIELD_NS.
 */
#define RECENT_NS 200000u
#define YIELD_NS 1000000u
#define NAP_MIN_NS 50000
#define NAP_MAX_NS 1000000
/*
 * Packets of a large batch.  The thread receives them better if they are not
 * data for this context.
 */
#define BULK 8u
/*
 * A late nap is one during which packets waited, because the poller had
 * stopped.  Each one adds the time since the last try, in ns, and at LATE_LIMIT
 * pollers are suspended.  What receiving by pollers saves is subtracted:
 * WAKE_NS, a wake-up of the thread, for each batch that a poller receives and
 * for each nap.
 */
#define WAKE_NS 20000u
#define LATE_LIMIT (128 * WAKE_NS)
/* How long; four times as long if the last time was recent. */
#define SUSPEND_MIN_NS 10000000ull
#define SUSPEND_MAX_NS 1000000000ull

/*
 * The thread polls the empty socket for SPIN_NS before it sleeps: an idle CPU
 * may need tens of microseconds to wake up.  It stops doing so for
 * SPIN_PAUSE_NS when most attempts find nothing.
 */
#define SPIN_NS 15000u
#define SPIN_PAUSE_NS 50000000u
#define SPIN_CREDIT 8

/*
 * A poller that has received a response polls LINGER_NS for a WRITE, see
 * socket_owner.h.  The score is that of responses that a WRITE followed.
 */
#define LINGER_NS 60000u
#define FOLLOWS_MIN 4u
#define FOLLOWS_MAX 16u

struct socket_owner {
	struct urxe_context *ctx;
	pthread_t thread;
	_Atomic bool stop;
	struct event_count wake; /* the candidate sleeps here */
	int bell; /* ends a sleep or nap of the socket owner */
	uint8_t gid[16];
	pthread_mutex_t lock; /* of the server: the thread and pollers */
	struct wire_server *server;
	struct completer completer;
	_Atomic uint64_t polled_at; /* end of a poller's last try to receive */
	_Atomic uint32_t yielding; /* pollers that yield before the next try */
	_Atomic bool left; /* the poller may poll memory now */
	_Atomic bool wants; /* the thread waits for `lock` */
	_Atomic uint64_t suspended_until; /* no poller receives before */
	uint64_t suspension; /* the last one, ns */
	/* protected by `lock` */
	uint64_t late; /* see LATE_LIMIT, ns */
	unsigned int follows; /* score of responses followed by a WRITE */
	uint64_t answered_at; /* time of a response that none has followed */
	/* of the thread only; credit: score of attempts to spin */
	bool realtime; /* a program may need the CPU: do not spin */
	int credit;
	uint64_t spin_after; /* no attempt before */
	uint64_t checked_at; /* time of the last server_check_cached() */
	unsigned int failures;
	/* socket owner last seen stopped, and its `batches` */
	uint32_t suspect, batches;
};

/* ------------------------------------------------------- election */

/*
 * Return true if process `who` was stopped at two checks and its `batches` did
 * not change in between, since a debugger may stop it for a moment only.  A
 * needless replacement does no harm, but loses packets.
 */
static bool is_stopped(struct socket_owner *h, uint32_t who)
{
	struct urxe_fabric *f = h->ctx->fabric;
	const struct urxe_owner_slot *owner_slot = owner_slot_of(f, who);
	uint32_t batches = owner_slot ? load_relaxed(&owner_slot->batches) : 0;
	bool twice = h->suspect == who && h->batches == batches;

	h->suspect = 0;
	if (!process_thread_is_stopped(
		    f, who, owner_slot ? load_relaxed(&owner_slot->tid) : 0))
		return false;
	h->suspect = who;
	h->batches = batches;
	return twice;
}

/*
 * Become the socket owner, if there is none, or it is dead or stopped.  *who
 * is the current owner.  `is_socket_owner` admits one thread of the process at
 * a time; it stays set until that thread knows that it was replaced.
 */
static bool socket_owner_take(struct socket_owner *h, uint32_t *who)
{
	struct urxe_fabric *f = h->ctx->fabric;
	_Atomic uint32_t *word = &f->dev->wire.socket_owner;
	const uint32_t me = process_id(f);

	*who = load_acquire(word);
	if (!me || *who == me ||
	    exchange_acquire(&f->self->is_socket_owner, true))
		return false;
	if ((!*who || process_is_dead(f, *who) || is_stopped(h, *who)) &&
	    cas_seq_cst(word, who, me))
		return true;
	store_release(&f->self->is_socket_owner, false);
	return false;
}

/* Give up ownership and wake the candidates. */
static void socket_owner_give_up(struct socket_owner *h)
{
	struct urxe_fabric *f = h->ctx->fabric;
	uint32_t me = process_id(f);

	cas_seq_cst(&f->dev->wire.socket_owner, &me, 0);
	store_release(&f->self->is_socket_owner, false);
	futex_wake(&f->dev->wire.socket_owner, INT_MAX);
}

/*
 * Wait until process `who` ends or gives up ownership, or until the retry
 * period ends.
 */
static void socket_owner_wait(struct socket_owner *h, uint32_t seen,
			      uint32_t who)
{
	struct urxe_fabric *f = h->ctx->fabric;
	struct futex_word words[3];
	uint32_t n = 0;

	if (who && event_count_takes_words() && process_watch(f, who, words)) {
		words[2] =
			(struct futex_word){ &f->dev->wire.socket_owner, who };
		n = 3;
	}
	event_count_wait_words(&h->wake, seen, words, n, RETRY_NS);
	if (n)
		process_wake_others(words, 2);
}

/* ------------------------------------------------------- the socket */

/*
 * Report on stderr that nothing is received.  This is always printed: a user
 * who set URXE_WIRE must not assume that the wire works.
 */
static void socket_owner_log_error(struct socket_owner *h, int err)
{
	char text[INET6_ADDRSTRLEN] = "?";
	const bool v4 = wire_gid_is_ipv4(h->gid);

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? h->gid + 12 : h->gid, text,
		  sizeof(text));
	fprintf(stderr,
		"urxe: wire: cannot receive packets on UDP port %d of %s: %s%s\n",
		WIRE_PORT, text, strerror(err),
		err == EADDRINUSE ? " (by rxe or another fabric?)" : "");
}

static bool socket_owner_open(struct socket_owner *h)
{
	int err;

	pthread_mutex_lock(&h->lock);
	err = -server_make(h->ctx, h->gid, &h->server);
	if (!err)
		h->server->bypass = &h->completer.bypass;
	pthread_mutex_unlock(&h->lock);
	if (!err) {
		h->failures = 0;
		store_relaxed(&h->ctx->receives, true);
		return true;
	}
	h->failures++;
	if (h->failures == (err == EADDRINUSE ? BIND_FAILURES_MAX : 1))
		socket_owner_log_error(h, err);
	return false;
}

/* Let no poller receive for a while.  The lock is held. */
static void pollers_suspend(struct socket_owner *h, uint64_t now)
{
	const uint64_t before = load_relaxed(&h->suspended_until);

	if (now < before)
		return;
	if (now - before > 10 * h->suspension)
		h->suspension = SUSPEND_MIN_NS;
	else if (h->suspension < SUSPEND_MAX_NS / 4)
		h->suspension *= 4;
	else
		h->suspension = SUSPEND_MAX_NS;
	store_relaxed(&h->suspended_until, now + h->suspension);
}

static void late_subtract(struct socket_owner *h, uint64_t ns)
{
	h->late -= h->late < ns ? h->late : ns;
}

static bool pollers_are_suspended(const struct socket_owner *h, uint64_t now)
{
	return now < load_relaxed(&h->suspended_until);
}

static bool poller_is_active(const struct socket_owner *h)
{
	const uint64_t at = load_relaxed(&h->polled_at), now = clock_now();

	return !pollers_are_suspended(h, now) &&
	       now - at < (load_relaxed(&h->yielding) ? YIELD_NS : RECENT_NS);
}

/* Adjust the score, after a batch. */
static void follows_note(struct socket_owner *h)
{
	const struct wire_server *s = h->server;
	const uint64_t now = clock_now();
	const bool recent = now - h->answered_at < LINGER_NS;

	if (s->writes && (s->answers || recent))
		h->follows += h->follows < FOLLOWS_MAX;
	else if (h->answered_at)
		h->follows -= h->follows < 2 ? h->follows : 2;
	h->answered_at = s->answers && !s->writes ? now : 0;
}

/* Receive a batch.  Return false if there was none.  The lock is held. */
static bool socket_owner_run(struct socket_owner *h)
{
	const bool did = server_run(h->server);

	if (h->server->batch)
		follows_note(h);
	return did;
}

/*
 * Receive a batch in place of the thread.  Return false if there was none.
 * After a response, set *until to the time until which the poller lingers.
 */
static bool poller_receive(struct socket_owner *h, uint64_t now,
			   uint64_t *until)
{
	const struct wire_server *s;
	bool did;

	store_relaxed(&h->polled_at, now);
	store_relaxed(&h->left, false);
	did = socket_owner_run(h);
	if (!did)
		return false;
	store_relaxed(&h->polled_at, clock_now());
	s = h->server;
	if (s->batch && s->batch <= BULK)
		late_subtract(h, WAKE_NS);
	if (s->batch - s->data > BULK)
		pollers_suspend(h, now);
	else if (s->batch <= BULK && h->answered_at &&
		 h->follows >= FOLLOWS_MIN)
		*until = h->answered_at + LINGER_NS;
	return true;
}

/*
 * The same, if the thread and other pollers do not receive.  Return whether the
 * socket was read.
 */
static bool poller_try(struct socket_owner *h, bool *did, uint64_t *until)
{
	const uint64_t now = clock_now();
	bool owns;

	*did = false;
	if (pollers_are_suspended(h, now) || load_relaxed(&h->wants) ||
	    pthread_mutex_trylock(&h->lock))
		return false;
	owns = h->server && owner_slot_is_current(&h->server->owner_slot);
	if (owns)
		*did = poller_receive(h, now, until);
	pthread_mutex_unlock(&h->lock);
	return owns;
}

/*
 * Yield, and tell the thread that another try follows.  Return whether other
 * threads ran meanwhile.
 */
static bool poller_yield(struct socket_owner *h, uint32_t polls)
{
	bool others;

	fetch_add_relaxed(&h->yielding, 1);
	others = idle_yield(polls);
	fetch_sub_relaxed(&h->yielding, 1);
	return others;
}

/* No WRITE followed, and the program may poll memory: wake the thread. */
static void poller_leave(struct socket_owner *h)
{
	store_relaxed(&h->left, true);
	eventfd_write(h->bell, 1);
}

/*
 * ctx->poller_waits: receive a batch, if the thread does not.  If a WRITE is
 * likely to follow, wait for it.  If there was no batch, yield.
 */
static bool socket_owner_poll(struct urxe_context *ctx, uint32_t polls)
{
	struct socket_owner *h = ctx->socket_owner;
	const int saved = errno;
	uint64_t until = 0;
	bool did, read, alone = true;
	int state;

	/* the system calls are cancellation points */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	read = poller_try(h, &did, &until);
	if (unlikely(until)) {
		do
			alone &= !poller_yield(h, IDLE_POLLS);
		while (poller_try(h, &did, &until) && !did &&
		       clock_now() < until);
		if (!did && alone)
			poller_leave(h);
	} else if (read && !did) {
		poller_yield(h, polls);
	}
	pthread_setcancelstate(state, NULL);
	errno = saved;
	return read && !did;
}

/* Packets waited for the end of a nap.  The lock is held. */
static void late_add(struct socket_owner *h)
{
	const uint64_t now = clock_now();

	if (pollers_are_suspended(h, now))
		return;
	h->late += now - load_relaxed(&h->polled_at);
	if (h->late < LATE_LIMIT)
		return;
	h->late = 0;
	pollers_suspend(h, now);
}

/* Receive a batch, after a nap or not.  Return false if there was none. */
static bool socket_owner_receive(struct socket_owner *h, bool napped)
{
	bool did;

	pthread_mutex_lock(&h->lock);
	did = socket_owner_run(h);
	if (did && napped)
		late_add(h);
	pthread_mutex_unlock(&h->lock);
	return did;
}

/* Check what is cached, once in IDLE_NS.  The lock is held. */
static void socket_owner_check(struct socket_owner *h)
{
	const uint64_t now = clock_now();

	if (now - h->checked_at < IDLE_NS)
		return;
	h->checked_at = now;
	server_check_cached(h->server);
}

/*
 * Sleep until a socket of fds is readable or the bell rings, for at most @ns,
 * and check what is cached.  Return whether packets wait in the own socket.
 */
static bool socket_owner_sleep(struct socket_owner *h, struct pollfd *fds,
			       uint64_t ns)
{
	const struct timespec time = { .tv_sec = ns / IDLE_NS,
				       .tv_nsec = ns % IDLE_NS };
	struct wire_server *s = h->server;
	eventfd_t rings;
	int n;

	groups_poll(&s->groups, fds + 2);
	n = ppoll(fds, 2 + s->groups.n, &time, NULL);
	if (n > 0 && fds[1].revents)
		eventfd_read(h->bell, &rings);
	/* pollers must not keep the thread from the sockets of groups */
	store_relaxed(&h->wants, n > 0 && s->groups.n);
	pthread_mutex_lock(&h->lock);
	store_relaxed(&h->wants, false);
	if (n > 0)
		server_run_groups(s, fds + 2);
	socket_owner_check(h);
	pthread_mutex_unlock(&h->lock);
	return n > 0 && fds[0].revents;
}

/*
 * Nap while a poller receives: without the own socket, unless the poller has
 * left.  Return whether packets may have waited for the end of a nap.
 */
static bool socket_owner_nap(struct socket_owner *h, struct pollfd *fds)
{
	uint64_t ns = NAP_MIN_NS;
	bool left = false;

	for (; poller_is_active(h) && !load_acquire(&h->stop) &&
	       owner_slot_is_current(&h->server->owner_slot);
	     ns = 2 * ns < NAP_MAX_NS ? 2 * ns : NAP_MAX_NS) {
		if (!left && load_relaxed(&h->left))
			ns = NAP_MIN_NS;
		left = load_relaxed(&h->left);
		fds[0].fd = left ? h->server->in.fd : -1;
		if (socket_owner_sleep(h, fds, ns))
			break;
		pthread_mutex_lock(&h->lock);
		late_subtract(h, WAKE_NS);
		pthread_mutex_unlock(&h->lock);
	}
	fds[0].fd = h->server->in.fd;
	return ns != NAP_MIN_NS && !left;
}

/* Poll the empty socket for SPIN_NS.  Return false if nothing arrived. */
static bool socket_owner_spin(struct socket_owner *h)
{
	uint64_t now = clock_now();
	const uint64_t end = now + SPIN_NS;

	if (h->realtime || now < h->spin_after)
		return false;
	for (; now < end && !poller_is_active(h); now = clock_now())
		if (socket_owner_receive(h, false)) {
			if (h->credit < SPIN_CREDIT)
				h->credit++;
			return true;
		}
	h->credit -= 2;
	if (h->credit <= 0) {
		h->credit = 2;
		h->spin_after = now + SPIN_PAUSE_NS;
	}
	return false;
}

/* While the own socket is busy: poll those of groups, and check. */
static void socket_owner_busy(struct socket_owner *h, struct pollfd *fds)
{
	if (h->server->groups.n) {
		socket_owner_sleep(h, fds, 0);
		return;
	}
	pthread_mutex_lock(&h->lock);
	socket_owner_check(h);
	pthread_mutex_unlock(&h->lock);
}

static void socket_owner_serve(struct socket_owner *h)
{
	struct wire_server *s = h->server;
	struct pollfd fds[2 + URXE_MAX_MCAST_GRP] = {
		{ .fd = s->in.fd, .events = POLLIN },
		{ .fd = h->bell, .events = POLLIN },
	};
	unsigned int rounds = 0;
	bool napped;

	store_relaxed(&s->owner_slot.sh->tid, (uint32_t)syscall(SYS_gettid));
	while (!load_acquire(&h->stop) &&
	       owner_slot_is_current(&s->owner_slot)) {
		napped = socket_owner_nap(h, fds);
		if (!socket_owner_receive(h, napped) && !socket_owner_spin(h))
			socket_owner_sleep(h, fds, IDLE_NS);
		else if (++rounds % BUSY_ROUNDS == 0)
			socket_owner_busy(h, fds);
	}
}

static void socket_owner_release(struct socket_owner *h)
{
	store_relaxed(&h->ctx->receives, false);
	pthread_mutex_lock(&h->lock);
	server_free(h->server);
	h->server = NULL;
	pthread_mutex_unlock(&h->lock);
	socket_owner_give_up(h);
}

/*
 * Become the socket owner and open the socket.  Returns false if another
 * process, *who, is the owner, or if the socket cannot be opened (*who is 0).
 */
static bool socket_owner_try(struct socket_owner *h, uint32_t *who)
{
	if (!socket_owner_take(h, who))
		return false;
	if (*who) {
		/*
		 * Have receivers recover what it left unfinished, also if its
		 * context is not dead: a forked child may share it, or the
		 * kernel has not closed its files yet.
		 */
		fabric_reap(h->ctx->fabric);
		fabric_request_recovery(h->ctx->fabric);
	}
	if (socket_owner_open(h))
		return true;
	socket_owner_give_up(h);
	*who = 0;
	return false;
}

static void *socket_owner_main(void *arg)
{
	struct socket_owner *h = arg;
	uint32_t seen, who;

	nofault_begin_thread();
	h->realtime = thread_is_realtime();
	prctl(PR_SET_TIMERSLACK, 1000ul); /* for naps */
	for (;;) {
		seen = event_count_read(&h->wake);
		process_publish_liveness(h->ctx->fabric);
		if (h->server) {
			socket_owner_serve(h);
			socket_owner_release(h);
		}
		if (load_acquire(&h->stop))
			return NULL;
		if (!socket_owner_try(h, &who))
			socket_owner_wait(h, seen, who);
	}
}

/* ------------------------------------------------------- life */

void socket_owner_start(struct urxe_context *ctx, const uint8_t gid[16])
{
	struct socket_owner *h = calloc(1, sizeof(*h));
	uint32_t who;

	if (!h)
		return;
	h->ctx = ctx;
	completer_begin(&h->completer, ctx);
	pthread_mutex_init(&h->lock, NULL);
	memcpy(h->gid, gid, 16);
	h->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	/* at once, so that packets are received when the device is open */
	if (h->bell >= 0) {
		socket_owner_try(h, &who);
		if (thread_start(&h->thread, socket_owner_main, h)) {
			ctx->socket_owner = h;
			store_release(&ctx->poller_waits, socket_owner_poll);
			return;
		}
	}
	urxe_note(
		"wire: cannot create a thread; packets of other hosts are received only if another process of the fabric owns the socket");
	if (h->server)
		socket_owner_release(h);
	if (h->bell >= 0)
		close(h->bell);
	free(h);
}

void socket_owner_stop(struct urxe_context *ctx)
{
	struct socket_owner *h = ctx->socket_owner;

	if (!h)
		return;
	store_relaxed(&ctx->poller_waits, NULL);
	ctx->socket_owner = NULL;
	store_release(&h->stop, true);
	eventfd_write(h->bell, 1);
	event_count_ring(&h->wake);
	pthread_join(h->thread, NULL);
	close(h->bell);
	free(h);
}

void socket_owner_after_fork(struct urxe_context *ctx)
{
	struct socket_owner *h = ctx->socket_owner;

	budget_after_fork(ctx);
	if (!h)
		return;
	store_relaxed(&ctx->poller_waits, NULL);
	store_relaxed(&ctx->receives, false);
	ctx->socket_owner = NULL;
	close(h->bell);
	if (h->server)
		server_disown(h->server);
}
