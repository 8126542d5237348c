// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Send window of a requester, see window.h. */
#include "window.h"

void window_begin(struct wire_window *w, uint32_t psn)
{
	psn &= WIRE_PSN_MASK;
	w->una = w->next = w->high = w->end = psn;
	if (!w->size)
		w->size = WINDOW_FIRST;
	w->answered = w->judged = w->resent = w->since_ackreq = 0;
	w->cut = w->recovers = w->repeats = false;
}

uint32_t window_extend(struct wire_window *w, uint32_t n)
{
	uint32_t psn = w->end;

	w->end = wire_psn_add(psn, n);
	return psn;
}

static uint32_t between(uint32_t from, uint32_t to)
{
	return (to - from) & WIRE_PSN_MASK;
}

uint32_t window_room(const struct wire_window *w)
{
	uint32_t out = between(w->una, w->next);
	uint32_t left = between(w->next, w->repeats ? w->stop : w->end);
	uint32_t room = out < w->size ? w->size - out : 0;

	return left < room ? left : room;
}

bool window_needs_ackreq(const struct wire_window *w)
{
	uint32_t half = w->size / 2;

	return w->since_ackreq + 1 >=
	       (half < WINDOW_ACKREQ ? half : WINDOW_ACKREQ);
}

/* If the last packet is repeated, continue with others. */
static void window_resume(struct wire_window *w)
{
	if (!w->repeats || wire_psn_before(w->next, w->stop))
		return;
	w->repeats = false;
	if (wire_psn_before(w->next, w->resume))
		w->next = w->resume;
}

void window_sent(struct wire_window *w, uint32_t n, bool asked)
{
	w->next = wire_psn_add(w->next, n);
	if (w->repeats) {
		w->resent += w->bursts; /* not for lost responses */
		/* a fetch is requested as a whole */
		if (wire_psn_before(w->stop, w->next))
			w->stop = w->next;
		if (w->bursts)
			w->until = w->stop;
		window_resume(w);
	} else {
		w->since_ackreq = asked ? 0 : w->since_ackreq + n;
	}
	if (between(w->una, w->high) < between(w->una, w->next))
		w->high = w->next;
}

bool window_has(const struct wire_window *w, uint32_t psn)
{
	return between(w->una, psn) < between(w->una, w->high);
}

static void window_grow(struct wire_window *w, uint32_t n)
{
	w->answered += n;
	if (w->answered < w->size)
		return;
	w->answered = 0;
	if (w->size < WINDOW_MAX)
		w->size++;
}

static void window_judge(struct wire_window *w, uint32_t n)
{
	w->judged += n;
	if (w->judged < WINDOW_JUDGED)
		return;
	if (w->resent > WINDOW_LOSSES)
		window_go_slow(w);
	w->judged = w->resent = 0;
}

/* Packets up to una are acknowledged.  What does that say of the responder? */
static void window_learn(struct wire_window *w)
{
	if (w->nacked && wire_psn_before(w->until, w->recover) &&
	    wire_psn_before(w->until, w->una))
		w->buffers = true;
	if (!wire_psn_before(w->una, w->recover))
		w->recovers = false;
}

bool window_answered(struct wire_window *w, uint32_t psn)
{
	uint32_t n = between(w->una, psn);

	if (!n || n > between(w->una, w->high))
		return false;
	/* the acknowledged packets need no retransmission */
	if (n > between(w->una, w->next))
		w->next = psn;
	w->una = psn;
	window_resume(w);
	if (w->cut && !wire_psn_before(psn, w->cut_at))
		w->cut = false;
	if (w->recovers)
		window_learn(w);
	window_grow(w, n);
	if (w->resent)
		window_judge(w, n);
	return true;
}

void window_go_slow(struct wire_window *w)
{
	if (w->cut)
		return;
	w->cut = true;
	w->cut_at = w->high;
	w->size = w->size / 2 > WINDOW_MIN ? w->size / 2 : WINDOW_MIN;
}

void window_go_back(struct wire_window *w, bool lost)
{
	w->next = w->una;
	w->answered = w->judged = w->resent = w->since_ackreq = 0;
	w->recovers = w->repeats = false;
	if (lost)
		window_go_slow(w);
}

void window_repeat(struct wire_window *w, uint32_t from, uint32_t to)
{
	if (!w->repeats)
		w->resume = w->next;
	w->next = from;
	w->stop = to;
	w->repeats = true;
	w->bursts = false;
}

/* Repeat w->burst packets from una on, if so many are outstanding. */
static void window_recover_burst(struct wire_window *w)
{
	const uint32_t out = between(w->una, w->repeats ? w->resume : w->next);

	w->until = wire_psn_add(w->una, w->burst < out ? w->burst : out);
	window_repeat(w, w->una, w->until);
	w->bursts = true;
}

bool window_recover(struct wire_window *w, bool nacked)
{
	if ((window_is_quiet(w) && !w->repeats) ||
	    (!w->buffers && w->trials == WINDOW_TRIALS)) {
		window_go_back(w, true);
		return false;
	}
	w->burst = 1;
	w->nacked = nacked;
	w->trials += nacked && !w->buffers;
	window_recover_burst(w);
	w->recover = w->resume;
	w->recovers = true;
	return true;
}

bool window_recover_more(struct wire_window *w)
{
	if (!w->recovers || w->una != w->until)
		return false;
	if (w->buffers) {
		w->burst = w->burst < WINDOW_BURST ? 2 * w->burst : w->burst;
		window_recover_burst(w);
	} else {
		window_go_back(w, true);
	}
	return true;
}

void window_give_up(struct wire_window *w)
{
	w->buffers = false;
	w->trials = 0;
	window_go_back(w, true);
}
