// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A worker process of the soak: its main loop and common functions */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "../bounce/forbid.h"
#include "soak.h"

struct shared *sh;
struct slot *me;
uint32_t my_slot;
struct worker w;
static uint64_t random_state;

const char *const kind_name[KINDS] = { "RC", "RC with SRQ", "UC", "XRC" };

void rnd_seed(uint64_t seed)
{
	random_state = seed * 2 + 1;
}

uint32_t rnd(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % below;
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void broken(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(me->said, sizeof(me->said), fmt, ap);
	va_end(ap);
	fprintf(stderr, "slot %u: %s\n", my_slot, me->said);
	_exit(3);
}

struct before call_begins(const char *what)
{
	me->doing = what;
	errno = 0;
	return (struct before){ me->starved, sh->stops };
}

static uint32_t stops_at_timeout;

bool timed_out(const struct before *b)
{
	if (errno != ETIMEDOUT || (!(b->stops & 1) && sh->stops == b->stops))
		return false;
	stops_at_timeout = sh->stops;
	return true;
}

bool lock_is_stopped(void)
{
	return sh->stops & 1 && sh->stops == stops_at_timeout;
}

bool made_or_refused(const char *what, bool ok, const struct before *b)
{
	if (ok)
		return true;
	if (!b->starved && !me->starved && !timed_out(b))
		broken("%s is refused: errno %d", what, errno);
	me->refused++;
	return false;
}

void post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	while (!made("ibv_post_send", !(errno = ibv_post_send(qp, wr, &bad)))) {
		if (errno != ENOMEM)
			broken("ibv_post_send: errno %d", errno);
		usleep(1000);
	}
}

static uint8_t fill_byte(uint32_t i, uint32_t seed)
{
	return (uint8_t)(seed * 131 + i * 7 + (i >> 8) * 29);
}

void fill(void *p, uint32_t len, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		((uint8_t *)p)[i] = fill_byte(i, seed);
}

bool filled(const void *p, uint32_t len, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		if (((const uint8_t *)p)[i] != fill_byte(i, seed))
			return false;
	return true;
}

/* --------------------------------------------------------------- the CQ */

static void got(const struct ibv_wc *wc)
{
	if (!datagrams_got(wc) && !pool_got(wc))
		links_got(wc);
}

static void poll_all(void)
{
	struct ibv_wc wc[16];
	int i, n;

	me->doing = "ibv_poll_cq";
	while ((n = ibv_poll_cq(w.cq, 16, wc)) > 0)
		for (i = 0; i < n; i++)
			got(&wc[i]);
	if (n < 0)
		broken("ibv_poll_cq: %d", n);
}

/* Wait for completions.  A worker with a completion channel sleeps. */
static void rest(void)
{
	struct pollfd p = { .events = POLLIN };
	struct ibv_cq *cq;
	void *arg;

	/* arming may have to create a thread, which may fail */
	if (!w.chan ||
	    !made("ibv_req_notify_cq", !ibv_req_notify_cq(w.cq, 0))) {
		sched_yield();
		return;
	}
	poll_all();
	p.fd = w.chan->fd;
	me->doing = "poll";
	if (poll(&p, 1, 5) != 1)
		return;
	must("ibv_get_cq_event", !ibv_get_cq_event(w.chan, &cq, &arg));
	ibv_ack_cq_events(cq, 1);
}

static void drain_async(void)
{
	struct ibv_async_event e;

	while (!ibv_get_async_event(w.ctx, &e)) {
		if (e.event_type == IBV_EVENT_CQ_ERR)
			broken("the CQ has overrun");
		ibv_ack_async_event(&e);
	}
}

/* ----------------------------------------------------------- open, close */

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	if (!list || !list[0]) {
		if (list)
			ibv_free_device_list(list);
		return NULL;
	}
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	return ctx;
}

static void worker_close(void)
{
	conns_close();
	links_close();
	me->waits_for = WAITS_FOR_ALL;
	datagrams_close();
	pool_close();
	if (w.cq)
		must("ibv_destroy_cq", !ibv_destroy_cq(w.cq));
	if (w.chan)
		must("ibv_destroy_comp_channel",
		     !ibv_destroy_comp_channel(w.chan));
	if (w.many_pd)
		must("ibv_dealloc_pd", !ibv_dealloc_pd(w.many_pd));
	/* a process that imported it may use it, or died while using it */
	if (w.pd)
		must("ibv_dealloc_pd",
		     !(errno = ibv_dealloc_pd(w.pd)) ||
			     (errno == EBUSY && w.imported));
	if (w.ctx)
		must("ibv_close_device", !ibv_close_device(w.ctx));
	memset(&w, 0, sizeof(w));
	me->waits_for = 0;
}

static bool worker_open(void)
{
	if (!made("ibv_open_device", w.ctx = open_device()))
		return false;
	fcntl(w.ctx->async_fd, F_SETFL, O_NONBLOCK);
	must("ibv_query_gid", !ibv_query_gid(w.ctx, 1, 0, &w.gid));
	if (!made("ibv_alloc_pd", w.pd = ibv_alloc_pd(w.ctx)) ||
	    !made("ibv_alloc_pd", w.many_pd = ibv_alloc_pd(w.ctx)))
		return false;
	if (rnd(3) == 0 && !made("ibv_create_comp_channel",
				 w.chan = ibv_create_comp_channel(w.ctx)))
		return false;
	return made("ibv_create_cq",
		    w.cq = ibv_create_cq(w.ctx, 4096, NULL, w.chan, 0)) &&
	       pool_open() && datagrams_open();
}

/* Resize the CQ, which may be in use by other processes. */
static void resize(void)
{
	/* the call waits for all requesters that use the old ring */
	me->waits_for = WAITS_FOR_ALL;
	made("ibv_resize_cq", !ibv_resize_cq(w.cq, (int)(4096u << rnd(2))));
	me->waits_for = 0;
}

static void turn(void)
{
	poll_all();
	drain_async();
	pool_step();
	links_step();
	datagrams_step();
	conns_step();
	if (rnd(20) == 0)
		cycle();
	if (rnd(500) == 0)
		resize();
	if (rnd(200) == 0)
		children_step();
	rest();
	me->beats++;
}

/* Print the location of a crash. */
static void crashed(int sig)
{
	void *at[40];

	(void)sig; /* afterwards the default action terminates the process */
	backtrace_symbols_fd(at, backtrace(at, 40), 2);
}

void watch_crashes(void)
{
	struct sigaction sa = { .sa_handler = crashed,
				.sa_flags = (int)SA_RESETHAND };

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
}

int worker_run(uint32_t slot, uint64_t seed)
{
	watch_crashes();
	my_slot = slot;
	me = &sh->slot[slot];
	rnd_seed(seed);
	if (rnd(3) == 0 && forbid(FORBID_READ | FORBID_WRITE))
		broken("no seccomp filter: errno %d", errno);
	me->waits_for = 0;
	while (!sh->quit) {
		if (worker_open())
			while (!sh->quit && !w.tired && rnd(20000))
				turn();
		worker_close();
		me->beats++;
	}
	me->doing = "ending";
	return 0;
}
