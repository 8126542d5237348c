// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Wire requester: outstanding fetches, and what is missing of them. */
#include "state.h"

void fetch_begin(const struct urxe_qp *qp, struct wire_requester *r,
		 uint32_t psn, uint32_t packets)
{
	r->fetch[(r->first + r->fetches++) % FETCHES_MAX] =
		(struct fetch){ psn, packets };
	r->fetched += (uint64_t)packets << qp->mtu_shift;
}

void fetch_end(const struct urxe_qp *qp, struct wire_requester *r)
{
	r->fetched -= (uint64_t)r->fetch[r->first].packets << qp->mtu_shift;
	r->first = (r->first + 1) % FETCHES_MAX;
	r->fetches--;
}

static uint32_t end_of(const struct fetch *f)
{
	return wire_psn_add(f->psn, f->packets);
}

/* Find the first gap in f, from r->gap on.  Returns false if there is none. */
static bool gap_in(const struct wire_requester *r, const struct fetch *f,
		   uint32_t *from, uint32_t *to)
{
	uint32_t end = end_of(f), at = r->gap;

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

void fetch_next_gap(struct urxe_qp *qp, struct wire_requester *r)
{
	uint32_t i, from, to;

	for (i = 0; i < r->fetches; i++) {
		if (!gap_in(r, &r->fetch[(r->first + i) % FETCHES_MAX], &from,
			    &to))
			continue;
		window_repeat(&r->window, from, to);
		r->gap = to;
		r->at = qp->sq.done;
		return;
	}
	r->has_gaps = false;
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
		fetch_next_gap(qp, r);
	}
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
