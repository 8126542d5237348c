/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Round-trip time of a connection: smoothed mean and deviation, as in RFC
 * 6298, of one packet at a time.  A packet that may have been retransmitted
 * is not timed (Karn's algorithm).  All times are in ns.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/psn.h"

struct wire_rtt {
	uint64_t mean, deviation; /* mean is 0 before the first sample */
	uint64_t least;
	uint64_t sent_at; /* of packet psn, as clock_now(); 0: none is timed */
	uint32_t psn;
};

static inline void rtt_begin(struct wire_rtt *t, uint32_t psn, uint64_t now)
{
	t->psn = psn;
	t->sent_at = now;
}

/* Packets are retransmitted: the timed one may be among them. */
static inline void rtt_cancel(struct wire_rtt *t)
{
	t->sent_at = 0;
}

/* All packets before una are acknowledged. */
static inline void rtt_answered(struct wire_rtt *t, uint32_t una, uint64_t now)
{
	uint64_t sample, error;

	if (!t->sent_at || !wire_psn_before(t->psn, una))
		return;
	sample = now - t->sent_at;
	t->sent_at = 0;
	if (!t->mean || sample < t->least)
		t->least = sample;
	if (!t->mean) {
		t->mean = sample;
		t->deviation = sample / 2;
		return;
	}
	error = sample > t->mean ? sample - t->mean : t->mean - sample;
	t->deviation = t->deviation - t->deviation / 4 + error / 4;
	t->mean = t->mean - t->mean / 8 + sample / 8;
}

#define RTT_PROBE_MIN 1000000ull
#define RTT_PROBE_FIRST 10000000ull

/* Return how long to wait for an acknowledgement before a probe. */
static inline uint64_t rtt_probe_after(const struct wire_rtt *t)
{
	const uint64_t wait = t->mean + 4 * t->deviation;

	if (!t->mean)
		return RTT_PROBE_FIRST;
	return wait > RTT_PROBE_MIN ? wait : RTT_PROBE_MIN;
}
