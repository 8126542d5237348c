// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Wire requester: outstanding fetches, and what is missing of them. */
#include "state.h"

void fetch_begin(const struct urxe_qp *qp, struct wire_requester *r,
		 uint32_t psn, uint32_t packets, uint32_t bytes)
{
	r->fetch[(r->first + r->fetches++) % FETCHES_MAX] =
		(struct fetch){ psn, packets, bytes };
	budget_charge(qp, r, bytes);
	r->fetched += (uint64_t)packets << qp->mtu_shift;
}

void fetch_end(const struct urxe_qp *qp, struct wire_requester *r)
{
	const struct fetch *f = &r->fetch[r->first];

	r->fetched -= (uint64_t)f->packets << qp->mtu_shift;
	budget_release(r, f->bytes);
	r->first = (r->first + 1) % FETCHES_MAX;
	r->fetches--;
}

static uint32_t end_of(const struct fetch *f)
{
	return wire_psn_add(f->psn, f->packets);
}

/*
 * Find the first gap in f from PSN `at` on, and before gaps_end.  Returns
 * false if there is none.
 */
static bool gap_in(const struct wire_requester *r, const struct fetch *f,
		   uint32_t at, uint32_t *from, uint32_t *to)
{
	uint32_t end = end_of(f);

	if (wire_psn_before(r->gaps_end, end))
		end = r->gaps_end;
	if (wire_psn_before(at, f->psn))
		at = f->psn;
	while (wire_psn_before(at, end) && early_has(&r->early, at))
		at = wire_psn_add(at, 1);
	*from = at;
	while (wire_psn_before(at, end) && !early_has(&r->early, at))
		at = wire_psn_add(at, 1);
	*to = at;
	return *from != *to;
}

/* The first gap from PSN `at` on, in any fetch */
static bool gap_from(const struct wire_requester *r, uint32_t at,
		     uint32_t *from, uint32_t *to)
{
	uint32_t i;

	if (wire_psn_before(at, r->window.una))
		at = r->window.una;
	for (i = 0; i < r->fetches; i++)
		if (gap_in(r, &r->fetch[(r->first + i) % FETCHES_MAX], at, from,
			   to))
			return true;
	return false;
}

/*
 * Return true if the responder may have as many requests to answer as
 * permitted: those for gaps, and the fetches behind the last response.
 */
static bool requests_are_out(const struct urxe_qp *qp,
			     const struct wire_requester *r)
{
	uint32_t n = 0, i, at = r->window.una, last = at, from, to;

	while (gap_from(r, at, &from, &to) && wire_psn_before(from, r->gap)) {
		n++;
		at = to;
	}
	if (!n)
		return false;
	early_last(&r->early, r->window.una, &last);
	for (i = 0; i < r->fetches; i++)
		n += wire_psn_before(
			last, r->fetch[(r->first + i) % FETCHES_MAX].psn);
	return n >= qp->attr.max_rd_atomic;
}

void fetch_next_gap(struct urxe_qp *qp, struct wire_requester *r)
{
	uint32_t from, to;

	if (r->window.repeats)
		return;
	r->has_gaps = gap_from(r, r->gap, &from, &to);
	if (!r->has_gaps || requests_are_out(qp, r))
		return;
	window_repeat(&r->window, from, to);
	r->gap = to;
	r->at = qp->sq.done;
}

bool fetch_more_gaps(struct urxe_qp *qp, struct wire_requester *r)
{
	uint32_t last;

	if (!wire_psn_before(r->window.una, r->gaps_end))
		r->gaps_asked = false;
	if (!r->gaps_asked)
		return false;
	if (!r->has_gaps && early_last(&r->early, r->window.una, &last) &&
	    wire_psn_before(r->gaps_end, last)) {
		r->gap = r->gaps_end;
		r->gaps_end = last;
		r->has_gaps = true;
	}
	if (r->has_gaps)
		fetch_next_gap(qp, r);
	return true;
}

bool fetch_again(struct urxe_qp *qp, struct wire_requester *r)
{
	const struct fetch *f = &r->fetch[r->first];
	const uint32_t una = r->window.una;

	if (!r->fetches || wire_psn_before(una, f->psn) ||
	    !wire_psn_before(una, end_of(f)))
		return false;
	if (!early_last(&r->early, una, &r->gaps_end))
		r->gaps_end = end_of(f);
	r->gap = una;
	r->has_gaps = r->gaps_asked = true;
	fetch_next_gap(qp, r);
	r->retransmits++;
	rtt_cancel(&r->rtt);
	return true;
}
