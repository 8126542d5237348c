// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The send window (wire/requester/window.h): room, acknowledgements, size,
 * recovery from losses.  The round-trip time (wire/requester/rtt.h).
 */
#include "unit_base.h"
#include "wire/requester/rtt.h"
#include "wire/requester/window.h"

/* Initial PSNs; the last two have a window across 2^23 and 2^24. */
static const uint32_t starts[] = { 0, 77, 0x7ffffe, 0xfffffe };

static struct wire_window begun(uint32_t psn, uint32_t packets)
{
	struct wire_window w = { 0 };

	window_begin(&w, psn);
	ck_assert_uint_eq(window_extend(&w, packets), psn);
	return w;
}

static uint32_t at(uint32_t psn, uint32_t n)
{
	return wire_psn_add(psn, n);
}

START_TEST(window_limits_packets)
{
	uint32_t psn = starts[_i];
	struct wire_window w = begun(psn, 10);

	ck_assert(window_is_quiet(&w));
	ck_assert_uint_eq(window_room(&w), 10);
	window_sent(&w, 10, false);
	ck_assert(!window_is_quiet(&w));
	ck_assert_uint_eq(window_room(&w), 0);
	ck_assert_uint_eq(window_extend(&w, 1000), at(psn, 10));
	ck_assert_uint_eq(window_room(&w), WINDOW_FIRST - 10);
	window_sent(&w, WINDOW_FIRST - 10, false);
	ck_assert_uint_eq(window_room(&w), 0);
	ck_assert(window_answered(&w, at(psn, 3)));
	ck_assert_uint_eq(window_room(&w), 3);
}
END_TEST

START_TEST(acknowledgements)
{
	uint32_t psn = starts[_i];
	struct wire_window w = begun(psn, 20);

	window_sent(&w, 8, false);
	ck_assert(window_has(&w, psn) && window_has(&w, at(psn, 7)));
	ck_assert(!window_has(&w, at(psn, 8)));
	ck_assert(!window_has(&w, at(psn, WIRE_PSN_MASK)));
	ck_assert(!window_answered(&w, psn)); /* nothing new */
	ck_assert(!window_answered(&w, at(psn, 9))); /* never sent */
	ck_assert(window_answered(&w, at(psn, 8)));
	ck_assert(window_is_quiet(&w));
	ck_assert(!window_answered(&w, at(psn, 8)));
	ck_assert(!window_answered(&w, at(psn, 3)));
	ck_assert(!window_has(&w, at(psn, 7)));
}
END_TEST

/*
 * While packets are retransmitted, an acknowledgement of their first
 * transmission is valid.
 */
START_TEST(ack_during_retransmission)
{
	uint32_t psn = starts[_i];
	struct wire_window w = begun(psn, 20);

	window_sent(&w, 10, false);
	ck_assert(window_answered(&w, at(psn, 2)));
	window_go_back(&w, true);
	ck_assert_uint_eq(w.next, at(psn, 2));
	ck_assert(window_has(&w, at(psn, 9)));
	window_sent(&w, 1, false);
	ck_assert(window_answered(&w, at(psn, 6)));
	ck_assert_uint_eq(w.next, at(psn, 6));
	ck_assert_uint_eq(window_room(&w), 14);
	ck_assert(!window_has(&w, at(psn, 10)));
}
END_TEST

START_TEST(window_size)
{
	struct wire_window w = begun(0, 1 << 20);
	uint32_t i;

	window_sent(&w, 100, false);
	window_go_back(&w, false); /* an RNR NAK: nothing was lost */
	ck_assert_uint_eq(w.size, WINDOW_FIRST);
	window_sent(&w, 100, false);
	window_go_back(&w, true);
	ck_assert_uint_eq(w.size, WINDOW_FIRST / 2);
	window_go_back(&w, true); /* the same loss */
	ck_assert_uint_eq(w.size, WINDOW_FIRST / 2);
	window_sent(&w, 64, false);
	ck_assert(window_answered(&w, 60));
	window_go_back(&w, true); /* packets outstanding at that time */
	ck_assert_uint_eq(w.size, WINDOW_FIRST / 2);
	window_sent(&w, 64, false);
	ck_assert(window_answered(&w, 100));
	ck_assert(!w.cut);
	ck_assert(w.size >= WINDOW_FIRST / 2);
	for (i = 0; i < 20; i++) {
		window_sent(&w, 1, false);
		window_go_back(&w, true);
		window_sent(&w, 1, false);
		w.cut = false;
	}
	ck_assert_uint_eq(w.size, WINDOW_MIN);
	for (i = 0; i < 1 << 17; i++) {
		window_sent(&w, 1, false);
		window_answered(&w, w.next);
	}
	ck_assert_uint_eq(w.size, WINDOW_MAX);
}
END_TEST

/*
 * A full window always has a packet with AckReq, whatever happens to the
 * window's size.
 */
START_TEST(ackreq_in_full_window)
{
	struct wire_window w = begun(starts[_i], 1 << 22);
	uint32_t round, sent, asked;

	for (round = 0; round < 1000; round++) {
		asked = w.next;
		for (sent = 0; window_room(&w) && sent < round % 97; sent++) {
			bool asks = window_needs_ackreq(&w);

			window_sent(&w, 1, asks);
			if (asks)
				asked = w.next;
		}
		if (round % 7 == 3)
			window_go_slow(&w);
		if (round % 11 == 5)
			window_go_back(&w, true);
		else if (window_answered(&w, asked))
			ck_assert_uint_gt(window_room(&w), 0);
		ck_assert(w.since_ackreq < WINDOW_ACKREQ);
	}
	window_begin(&w, 0);
	window_extend(&w, 10);
	w.size = WINDOW_MIN;
	ck_assert(!window_needs_ackreq(&w));
	window_sent(&w, 1, false);
	ck_assert(window_needs_ackreq(&w));
}
END_TEST

/* Packets from psn on are repeated, up to end; then comes `resume`. */
static void repeats(struct wire_window *w, uint32_t psn, uint32_t n,
		    uint32_t resume)
{
	ck_assert(w->repeats);
	ck_assert_uint_eq(w->next, psn);
	ck_assert_uint_eq(window_room(w), n);
	while (n--)
		window_sent(w, 1, true);
	ck_assert(!w->repeats);
	ck_assert_uint_eq(w->next, resume);
}

/* A responder that buffers gets what is missing only. */
START_TEST(recovery)
{
	uint32_t psn = starts[_i], i;
	struct wire_window w = begun(psn, 200);

	window_sent(&w, 100, false);
	ck_assert(window_recover(&w, true));
	repeats(&w, psn, 1, at(psn, 100));
	ck_assert_uint_eq(window_room(&w), WINDOW_FIRST - 100);
	ck_assert(window_answered(&w, at(psn, 40)));
	ck_assert(w.buffers && w.recovers);
	ck_assert(!window_recover_more(&w)); /* a NAK will tell what is lost */
	ck_assert(window_recover(&w, true));
	repeats(&w, at(psn, 40), 1, at(psn, 100));
	/* each burst is twice as long as long as nothing was buffered */
	for (i = 41; i < 41 + 2 + 4 + 8; i += w.burst) {
		ck_assert(window_answered(&w, at(psn, i)));
		ck_assert(window_recover_more(&w));
		repeats(&w, at(psn, i), w.burst, at(psn, 100));
	}
	ck_assert_uint_eq(w.burst, 8);
	ck_assert(window_answered(&w, at(psn, i - 1)));
	ck_assert(!window_recover_more(&w)); /* not all are acknowledged */
	ck_assert(window_answered(&w, at(psn, 99)));
	ck_assert(!window_recover_more(&w));
	ck_assert(window_answered(&w, at(psn, 100)));
	ck_assert(!w.recovers && !window_recover_more(&w));
	ck_assert(window_is_quiet(&w));
	ck_assert_uint_eq(w.size, WINDOW_FIRST); /* few losses */
}
END_TEST

/* A responder that does not buffer gets everything again. */
START_TEST(trials)
{
	uint32_t psn = starts[_i], i;
	struct wire_window w = begun(psn, 200);

	for (i = 0; i < WINDOW_TRIALS; i++, psn = at(psn, 10)) {
		window_sent(&w, 10, false);
		ck_assert(window_recover(&w, true));
		repeats(&w, psn, 1, at(psn, 10));
		ck_assert(window_answered(&w, at(psn, 1)));
		ck_assert(window_recover_more(&w));
		ck_assert(!w.recovers && !w.repeats);
		ck_assert_uint_eq(w.next, at(psn, 1));
		window_sent(&w, 9, true);
		ck_assert(window_answered(&w, at(psn, 10)));
	}
	window_sent(&w, 10, false);
	ck_assert(!window_recover(&w, true));
	ck_assert_uint_eq(w.next, psn);
	/* until it is given up */
	window_sent(&w, 10, false);
	window_give_up(&w);
	window_sent(&w, 10, false);
	ck_assert(window_recover(&w, true));
}
END_TEST

/*
 * A probe does not show whether the responder buffers: the packets behind it
 * may have arrived before.
 */
START_TEST(probe)
{
	uint32_t psn = starts[_i];
	struct wire_window w = begun(psn, 200);

	window_sent(&w, 10, false);
	ck_assert(window_recover(&w, false));
	repeats(&w, psn, 1, at(psn, 10));
	ck_assert(window_answered(&w, at(psn, 5)));
	ck_assert(!w.buffers);
	ck_assert(!window_recover_more(&w));
	ck_assert_uint_eq(w.next, at(psn, 10));
	/* an acknowledgement during a repetition ends it */
	ck_assert(window_recover(&w, false));
	ck_assert(window_answered(&w, at(psn, 8)));
	ck_assert(!w.repeats);
	ck_assert_uint_eq(w.next, at(psn, 10));
}
END_TEST

/* More losses than WINDOW_LOSSES halve the window. */
START_TEST(many_losses)
{
	uint32_t psn = starts[_i], i;
	struct wire_window w = begun(psn, 1000);

	w.buffers = true;
	for (i = 0; i < 2 * WINDOW_JUDGED; i += 2) {
		window_sent(&w, 2, false);
		ck_assert(window_recover(&w, true));
		window_sent(&w, 1, true);
		ck_assert(window_answered(&w, at(psn, i + 2)));
	}
	ck_assert_uint_lt(w.size, WINDOW_FIRST);
}
END_TEST

/* The estimate follows RFC 6298, and no retransmitted packet is timed. */
START_TEST(round_trip_time)
{
	struct wire_rtt t = { 0 };
	int i;

	ck_assert_uint_eq(rtt_probe_after(&t), RTT_PROBE_FIRST);
	rtt_begin(&t, 5, 1000);
	rtt_answered(&t, 5, 2000); /* not yet */
	ck_assert_uint_eq(t.mean, 0);
	rtt_answered(&t, 6, 801000);
	ck_assert_uint_eq(t.mean, 800000);
	ck_assert_uint_eq(rtt_probe_after(&t), 800000 + 4 * 400000);
	rtt_begin(&t, 6, 1000000);
	rtt_cancel(&t);
	rtt_answered(&t, 7, 90000000);
	ck_assert_uint_eq(t.mean, 800000);
	for (i = 0; i < 100; i++) {
		rtt_begin(&t, 6, 1000);
		rtt_answered(&t, 7, 11000);
	}
	ck_assert_uint_lt(t.mean, 11000);
	ck_assert_uint_gt(t.mean, 9000);
	ck_assert_uint_eq(rtt_probe_after(&t), RTT_PROBE_MIN);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("window");
	const int n = sizeof(starts) / sizeof(*starts);

	add_loop(s, window_limits_packets, n);
	add_loop(s, acknowledgements, n);
	add_loop(s, ack_during_retransmission, n);
	add(s, window_size);
	add_loop(s, ackreq_in_full_window, n);
	add_loop(s, recovery, n);
	add_loop(s, trials, n);
	add_loop(s, probe, n);
	add_loop(s, many_losses, n);
	add(s, round_trip_time);
	return run_suite(s);
}
