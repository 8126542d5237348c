// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "engine/log.h"
#include "holder.h"
#include "server.h"
#include "wire/address.h"

/* How soon it is tried again; nobody wakes us when the holder is stopped. */
#define AGAIN_NS 100000000ull
/* Nothing came for so long: what is gone is let go of, and whether another one
 * holds is looked at. */
#define IDLE_MS 1000
/* A port that is in use may be that of a process that is just ending. */
#define PATIENCE 20
/* Groups are looked at so seldom while the own address has something. */
#define TURNS 16

struct wire_holder {
	struct urxe_context *ctx;
	pthread_t thread;
	_Atomic bool stop;
	struct event_count wake; /* who waits sleeps here ... */
	int bell; /* ... and who holds polls this */
	uint8_t gid[16];
	struct wire_server *server;
	unsigned int failures;
	uint32_t suspect, turns; /* who was seen stopped, and when */
};

/* ------------------------------------------------------- election */

/*
 * Twice, and he did nothing in between: a debugger may stop him for a moment.
 * That he holds it again would do no harm, but cost packets.
 */
static bool is_stopped(struct wire_holder *h, uint32_t who)
{
	struct urxe_fabric *f = h->ctx->fabric;
	const struct urxe_wire_seat *seat = seat_of(f, who);
	uint32_t turns = seat ? load_relaxed(&seat->turns) : 0;
	bool again = h->suspect == who && h->turns == turns;

	h->suspect = 0;
	if (!process_thread_is_stopped(f, who, seat ? load_relaxed(&seat->tid) : 0))
		return false;
	h->suspect = who;
	h->turns = turns;
	return again;
}

/*
 * The word has the process's id: one thread of it at a time, until it knows
 * itself that it holds no more.
 */
static bool holder_take(struct wire_holder *h, uint32_t *who)
{
	struct urxe_fabric *f = h->ctx->fabric;
	_Atomic uint32_t *word = &f->dev->wire.holder;
	const uint32_t me = process_id(f);

	*who = load_acquire(word);
	if (!me || *who == me || exchange_acquire(&f->self->holding, true))
		return false;
	if ((!*who || process_is_dead(f, *who) || is_stopped(h, *who)) &&
	    cas_seq_cst(word, who, me))
		return true;
	store_release(&f->self->holding, false);
	return false;
}

/* Those who wait look for the next one. */
static void holder_give(struct wire_holder *h)
{
	struct urxe_fabric *f = h->ctx->fabric;
	uint32_t me = process_id(f);

	cas_seq_cst(&f->dev->wire.holder, &me, 0);
	store_release(&f->self->holding, false);
	futex_wake(&f->dev->wire.holder, INT_MAX);
}

/* Until who holds it ends, or gives it. */
static void holder_wait(struct wire_holder *h, uint32_t seen, uint32_t who)
{
	struct urxe_fabric *f = h->ctx->fabric;
	struct futex_word words[3];
	uint32_t n = 0;

	if (who && event_count_takes_words() && process_watch(f, who, words)) {
		words[2] = (struct futex_word){ &f->dev->wire.holder, who };
		n = 3;
	}
	event_count_wait_words(&h->wake, seen, words, n, AGAIN_NS);
	if (n)
		process_pass_on(words, 2);
}

/* ------------------------------------------------------- the socket */

/* Unasked: who wants a wire must not believe to have one. */
static void holder_say(struct wire_holder *h, int err)
{
	char text[INET6_ADDRSTRLEN] = "?";
	const bool v4 = wire_gid_is_ipv4(h->gid);

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? h->gid + 12 : h->gid, text,
		  sizeof(text));
	fprintf(stderr,
		"urxe: the wire: nothing is received: UDP port %d of %s: %s%s\n",
		WIRE_PORT, text, strerror(err),
		err == EADDRINUSE ? " (rxe, or another fabric?)" : "");
}

static bool holder_open(struct wire_holder *h)
{
	int err = -server_make(h->ctx, h->gid, &h->server);

	if (!err) {
		h->failures = 0;
		return true;
	}
	h->failures++;
	if (h->failures == (err == EADDRINUSE ? PATIENCE : 1))
		holder_say(h, err);
	return false;
}

static void holder_hold(struct wire_holder *h)
{
	struct wire_server *s = h->server;
	struct pollfd fds[2 + URXE_MAX_MCAST_GRP] = {
		{ .fd = s->in.fd, .events = POLLIN },
		{ .fd = h->bell, .events = POLLIN },
	};
	unsigned int turns = 0;
	int ms;

	store_relaxed(&s->seat.sh->tid, (uint32_t)syscall(SYS_gettid));
	while (!load_acquire(&h->stop) && seat_holds(&s->seat)) {
		if (!server_run(s))
			ms = IDLE_MS;
		else if (++turns % TURNS || !s->groups.n)
			continue;
		else
			ms = 0;
		groups_poll(&s->groups, fds + 2);
		if (poll(fds, 2 + s->groups.n, ms) > 0)
			server_run_groups(s, fds + 2);
		else if (ms)
			server_look_after(s);
	}
}

static void holder_release(struct wire_holder *h)
{
	server_free(h->server);
	h->server = NULL;
	holder_give(h);
}

/* False: another one holds it, *who, or (0) it cannot be opened. */
static bool holder_try(struct wire_holder *h, uint32_t *who)
{
	if (!holder_take(h, who))
		return false;
	if (holder_open(h))
		return true;
	holder_give(h);
	*who = 0;
	return false;
}

static void *holder_main(void *arg)
{
	struct wire_holder *h = arg;
	uint32_t seen, who;

	for (;;) {
		seen = event_count_read(&h->wake);
		process_show_life(h->ctx->fabric);
		if (h->server) {
			holder_hold(h);
			holder_release(h);
		}
		if (load_acquire(&h->stop))
			return NULL;
		if (!holder_try(h, &who))
			holder_wait(h, seen, who);
	}
}

/* ------------------------------------------------------- life */

void holder_start(struct urxe_context *ctx, const uint8_t gid[16])
{
	struct wire_holder *h = calloc(1, sizeof(*h));
	uint32_t who;

	if (!h)
		return;
	h->ctx = ctx;
	memcpy(h->gid, gid, 16);
	h->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	/* at once: who has the device open can be heard */
	if (h->bell >= 0) {
		holder_try(h, &who);
		if (thread_start(&h->thread, holder_main, h)) {
			ctx->holder = h;
			return;
		}
	}
	urxe_note("no thread can be made: another process must read the wire");
	if (h->server)
		holder_release(h);
	if (h->bell >= 0)
		close(h->bell);
	free(h);
}

void holder_stop(struct urxe_context *ctx)
{
	struct wire_holder *h = ctx->holder;

	if (!h)
		return;
	ctx->holder = NULL;
	store_release(&h->stop, true);
	eventfd_write(h->bell, 1);
	event_count_ring(&h->wake);
	pthread_join(h->thread, NULL);
	close(h->bell);
	free(h);
}

void holder_after_fork(struct urxe_context *ctx)
{
	struct wire_holder *h = ctx->holder;

	if (!h)
		return;
	ctx->holder = NULL;
	close(h->bell);
	if (h->server)
		server_disown(h->server);
}
