// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Send window of a requester, see window.h. */
#include "window.h"

void window_begin(struct wire_window *w, uint32_t psn)
{
	psn &= WIRE_PSN_MASK;
	w->una = w->next = w->high = w->end = psn;
	if (!w->size)
		w->size = WINDOW_FIRST;
	w->answered = w->since_ackreq = 0;
	w->cut = false;
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
	uint32_t left = between(w->next, w->end);
	uint32_t room = out < w->size ? w->size - out : 0;

	return left < room ? left : room;
}

bool window_needs_ackreq(const struct wire_window *w)
{
	uint32_t half = w->size / 2;

	return w->since_ackreq + 1 >=
	       (half < WINDOW_ACKREQ ? half : WINDOW_ACKREQ);
}

void window_sent(struct wire_window *w, uint32_t n, bool asked)
{
	w->since_ackreq = asked ? 0 : w->since_ackreq + n;
	w->next = wire_psn_add(w->next, n);
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
	if (w->answered < w->size || w->size >= WINDOW_MAX)
		return;
	w->answered = 0;
	w->size++;
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
	if (w->cut && !wire_psn_before(psn, w->cut_at))
		w->cut = false;
	window_grow(w, n);
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
	w->answered = w->since_ackreq = 0;
	if (lost)
		window_go_slow(w);
}
