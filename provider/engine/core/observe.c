// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Calls of the registered observers; see observe.h for the observation points
 * and the locks that are held.
 */
#include "observe.h"

struct urxe_observer *urxe_observers;

void observer_add(struct urxe_observer *o)
{
	o->next = urxe_observers;
	urxe_observers = o;
}

void observe_request(enum observe_point point, const struct urxe_qp *qp,
		     const struct urxe_wqe *w, uint32_t what)
{
	const struct urxe_observer *o;

	for (o = urxe_observers; o; o = o->next)
		if (o->request)
			o->request(point, qp, w, what);
}

void observe_fetch(const struct urxe_qp *qp, const struct urxe_wqe *w,
		   uint64_t old)
{
	const struct urxe_observer *o;

	for (o = urxe_observers; o; o = o->next)
		if (o->fetches)
			o->fetches(qp, w, old);
}

void observe_completion(const struct urxe_cqe *e)
{
	const struct urxe_observer *o;

	for (o = urxe_observers; o; o = o->next)
		if (o->completes)
			o->completes(e);
}

void observe_break(const struct urxe_qp *qp, enum ibv_qp_state state)
{
	const struct urxe_observer *o;

	for (o = urxe_observers; o; o = o->next)
		if (o->breaks)
			o->breaks(qp, state);
}
