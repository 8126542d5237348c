// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The send window (wire/requester/window.h) against a responder, over a link
 * that loses and reorders packets.  The test is the responder, which buffers
 * packets behind a missing one or drops them, and the rest of the requester
 * (requester/answer.c).  Time is simulated: when the link is empty, the next
 * timer expires.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_base.h"
#include "wire/requester/window.h"

#define PACKETS 20000u
#define LINK_MAX 4096u
#define PROBES 3 /* requester/state.h */
#define TIMEOUTS_MAX 100000

enum kind { DATA, ACK, NAK };

struct sent {
	enum kind kind;
	uint32_t psn;
	bool asks; /* AckReq */
	/* sent again; of an answer: the packet that it is for was */
	bool again;
};

/* One direction of the link */
struct way {
	struct sent queue[LINK_MAX];
	uint32_t n;
};

static int NAKS, MORES;
static struct sim {
	bool buffers, reorders, only_first;
	uint32_t lost; /* of 1000 packets */
	struct way there, back;
	/* requester */
	struct wire_window w;
	bool gone_back;
	int probes, timers;
	uint32_t first, end; /* PSNs */
	uint32_t packets; /* sent */
	/* responder */
	uint32_t epsn;
	bool nak_sent;
	bool has[256 + LINK_MAX]; /* by PSN modulo its size: buffered */
} sim;

static uint32_t chance(uint32_t n)
{
	return (uint32_t)rand() % n;
}

static void way_put(struct way *way, struct sent s, bool may_be_lost)
{
	if (may_be_lost && chance(1000) < sim.lost)
		return;
	ck_assert_uint_lt(way->n, LINK_MAX);
	way->queue[way->n++] = s;
}

static struct sent way_take(struct way *way)
{
	const uint32_t most = way->n < 20 ? way->n : 20;
	const uint32_t i = sim.reorders && !chance(10) ? chance(most) : 0;
	const struct sent s = way->queue[i];

	way->n--;
	memmove(way->queue + i, way->queue + i + 1,
		(way->n - i) * sizeof(way->queue[0]));
	return s;
}

/* ------------------------------------------------------- responder */

static bool *buffered(uint32_t psn)
{
	return &sim.has[psn % (sizeof(sim.has) / sizeof(sim.has[0]))];
}

static void answer(enum kind kind, uint32_t psn, bool again)
{
	way_put(&sim.back, (struct sent){ kind, psn, false, again },
		!sim.only_first);
}

static void nak_once(void)
{
	if (!sim.nak_sent)
		answer(NAK, sim.epsn, false);
	sim.nak_sent = true;
}

static void execute(void)
{
	*buffered(sim.epsn) = false;
	sim.epsn = wire_psn_add(sim.epsn, 1);
	sim.nak_sent = false;
}

static bool any_buffered(void)
{
	return memchr(sim.has, true, sizeof(sim.has));
}

static void responder_takes(struct sent s)
{
	const int32_t behind = wire_psn_minus(s.psn, sim.epsn);
	bool drained = false;

	if (behind > 0) {
		if (sim.buffers && behind <= 256)
			*buffered(s.psn) = true;
		nak_once();
		return;
	}
	if (!behind)
		execute();
	for (; *buffered(sim.epsn); drained = true)
		execute();
	if (s.asks || behind < 0 || drained)
		answer(ACK, wire_psn_add(sim.epsn, WIRE_PSN_MASK), s.again);
	if (drained && any_buffered())
		nak_once();
}

/* ------------------------------------------------------- requester */

static void requester_sends(void)
{
	struct wire_window *w = &sim.w;
	bool asks, again;
	uint32_t psn;

	while (window_room(w)) {
		psn = w->next;
		again = wire_psn_before(psn, w->high);
		asks = w->repeats || window_needs_ackreq(w) ||
		       wire_psn_add(psn, 1) == w->end;
		window_sent(w, 1, asks);
		sim.packets++;
		way_put(&sim.there, (struct sent){ DATA, psn, asks, again },
			!sim.only_first ||
				(!again && wire_psn_add(psn, 1) != w->end));
	}
}

static void acknowledged(uint32_t psn)
{
	/* no packet is acknowledged before it was executed */
	ck_assert(!wire_psn_before(sim.epsn, psn));
	if (!window_answered(&sim.w, psn))
		return;
	sim.gone_back = false;
	sim.probes = 0;
}

static void requester_takes(struct sent s)
{
	if (!window_has(&sim.w, s.psn))
		return;
	if (s.kind == ACK) {
		acknowledged(wire_psn_add(s.psn, 1));
		/* the requester tells this by the round-trip time */
		if (s.again && window_recover_more(&sim.w))
			sim.gone_back = true, MORES++;
		return;
	}
	acknowledged(s.psn);
	if (sim.gone_back)
		return;
	sim.gone_back = true;
	NAKS++;
	window_recover(&sim.w, true);
}

/* Nothing is on the link: a probe, or after the last one the timeout. */
static void timer_expires(void)
{
	ck_assert_int_lt(++sim.timers, TIMEOUTS_MAX);
	if (++sim.probes < PROBES) {
		window_recover(&sim.w, false);
	} else if (sim.probes == PROBES) {
		window_give_up(&sim.w);
	} else {
		sim.gone_back = false;
		window_go_back(&sim.w, true);
	}
}

static void simulate(uint32_t first)
{
	srand(first);
	sim.first = sim.epsn = first;
	window_begin(&sim.w, first);
	window_extend(&sim.w, PACKETS);
	sim.end = wire_psn_add(first, PACKETS);
	while (sim.w.una != sim.end) {
		requester_sends();
		if (sim.there.n && (!sim.back.n || chance(2)))
			responder_takes(way_take(&sim.there));
		else if (sim.back.n)
			requester_takes(way_take(&sim.back));
		else
			timer_expires();
	}
	ck_assert_uint_eq(sim.epsn, sim.end);
}

static const uint32_t starts[] = { 0, 0x7ffff0, 0xfff000 };
#define STARTS 3

/*
 * Only packets that are sent for the first time are lost, but not the last
 * one.  NAKs tell all losses, so no timer is needed, also with an infinite
 * timeout.  (If many are lost, go-back-N may lose the last one of a small
 * window.)
 */
START_TEST(naks_suffice)
{
	sim.only_first = true;
	sim.buffers = _i / STARTS;
	sim.lost = sim.buffers ? 100 : 10;
	simulate(starts[_i % STARTS]);
	ck_assert_int_eq(sim.timers, 0);
	ck_assert(sim.w.buffers == sim.buffers);
}
END_TEST

/* Everything arrives, once and in order, whatever is lost or reordered. */
START_TEST(everything_arrives)
{
	static const uint32_t lost[] = { 1, 10, 100, 300 };

	sim.lost = lost[_i / STARTS % 4];
	sim.reorders = _i / STARTS / 4 % 2;
	sim.buffers = _i / STARTS / 8;
	simulate(starts[_i % STARTS]);
	if (sim.buffers && sim.lost <= 10)
		ck_assert_uint_lt(sim.packets,
				  PACKETS * (sim.reorders ? 13 : 11) / 10);
	if (sim.buffers && sim.lost == 100)
		ck_assert_uint_lt(sim.packets, PACKETS * 3 / 2);
}
END_TEST

/* Without losses, reordered packets cost a few retransmissions. */
START_TEST(reordered)
{
	sim.reorders = true;
	sim.buffers = true;
	simulate(starts[_i]);
	ck_assert_uint_lt(sim.packets, PACKETS * 13 / 10);
	fprintf(stderr,
		"packets %u size %u timers %d buffers %d trials %d naks %d more %d\n",
		sim.packets, sim.w.size, sim.timers, sim.w.buffers,
		sim.w.trials, NAKS, MORES);
	ck_assert_uint_ge(sim.w.size, WINDOW_FIRST);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("window_loss");

	add_loop(s, naks_suffice, 2 * STARTS);
	add_loop(s, everything_arrives, 16 * STARTS);
	add_loop(s, reordered, STARTS);
	return run_suite(s);
}
