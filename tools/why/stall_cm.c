// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Waits of rdma_cm: unread events, connection requests without a reply,
 * listeners, and blocked rdma_get_cm_event() calls. They are read from the
 * copy of the connection manager's tables in the view.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "fabric/reason.h"
#include "stall.h"

static struct view_process chan_process(const struct view *v,
					const struct cm_chan *c)
{
	return view_process(v, c->pid, 0, c->comm);
}

static void stall_of_chan(struct stalls *s, const struct view *v, struct cm *cm,
			  const struct cm_chan *c)
{
	const struct view_process p = chan_process(v, c);
	const struct cm_event *e = cm_event_at(cm, c->head);
	struct stall *out;

	if (!c->events || c->state != CM_CHAN_LIVE || p.state == '-')
		return;
	/* the ordinal of the event at the head identifies the wait */
	out = stall_add(s, "cm-event", &p, e ? e->order : 0);
	stall_append(out, "%u rdma_cm event%s not read", c->events,
		     plural_is(c->events));
	if (e)
		stall_append(out, ", the oldest RDMA_CM_EVENT_%s",
			     reason_cm_event_name(e->resp.event));
	stall_ends(out, "rdma_get_cm_event by %s", process_name(&p));
}

/*
 * Get the process that owns the event channel of @id. Return false if the
 * channel or its process is gone.
 */
static bool id_process(const struct view *v, struct cm *cm,
		       const struct cm_id *id, struct view_process *out)
{
	const struct cm_chan *c = id ? cm_chan_at(cm, id->chan) : NULL;

	if (!c || c->state != CM_CHAN_LIVE)
		return false;
	*out = chan_process(v, c);
	return out->state != '-';
}

/* An id whose REQ or SIDR_REQ was sent and has no reply yet. */
static void stall_of_connect(struct stalls *s, const struct view *v,
			     struct cm *cm, const struct cm_id *id)
{
	struct view_process p, q;
	struct stall *out;
	const int peer = fabric_gid_owner(v->dev, id->dgid);
	bool parked = id->flags & CM_F_PARKED;

	if (!id_process(v, cm, id, &p))
		return;
	out = stall_add(s, "cm-connect", &p,
			(uint64_t)id->gen << 32 | cm_id_ref(cm, id));
	stall_append(out, "rdma_connect to port %u waits for a reply",
		     be16toh(id->dst.in.sin_port));
	if (id->flags & CM_F_UNSENT) {
		stall_no_path(out, v, id->device,
			      peer < 0 ? id->device : (uint32_t)peer);
	} else if (id_process(v, cm,
			      cm_deref(cm, parked ? id->listener : id->peer),
			      &q)) {
		stall_append(out,
			     parked ? ": the backlog of %s is full" :
				      ": %s has not accepted",
			     process_name(&q));
		if (process_is_stopped(&q))
			stall_append(out, ", which is stopped");
		stall_ends(out,
			   parked ? "rdma_get_cm_event by %s" :
				    "rdma_accept or rdma_reject by %s",
			   process_name(&q));
	} else {
		stall_append(out, ": the peer is gone or on another host");
		stall_ends(out, "the CM timeout");
	}
}

/*
 * An id of a connection request that the program has neither accepted nor
 * rejected.
 */
static void stall_of_request(struct stalls *s, const struct view *v,
			     struct cm *cm, const struct cm_id *id)
{
	struct view_process p, q;
	struct stall *out;

	if (!id_process(v, cm, id, &p))
		return;
	out = stall_add(s, "cm-accept", &p,
			(uint64_t)id->gen << 32 | cm_id_ref(cm, id));
	stall_append(out, "a connection request");
	if (id_process(v, cm, cm_deref(cm, id->peer), &q))
		stall_append(out, " from %s", process_name(&q));
	stall_append(out, " is neither accepted nor rejected");
	stall_ends(out, "rdma_accept or rdma_reject by %s", process_name(&p));
}

/* ---------------------------------------------------------- listeners */

/* "10.0.0.1", or "any address" */
static const char *address_word(const union cm_addr *a)
{
	static char text[2][INET6_ADDRSTRLEN];
	static unsigned int next;
	const bool v6 = a->sa.sa_family == AF_INET6;
	const void *raw = v6 ? (const void *)&a->in6.sin6_addr :
			       (const void *)&a->in.sin_addr;
	static const uint8_t wildcard[16];

	if ((!v6 && a->sa.sa_family != AF_INET) ||
	    !memcmp(raw, wildcard, v6 ? 16 : 4))
		return "any address";
	next = (next + 1) % 2;
	return inet_ntop(a->sa.sa_family, raw, text[next], sizeof(text[0])) ?
		       text[next] :
		       "?";
}

/*
 * Count the requests that the listener has not fetched, and those that are
 * parked because its backlog is full.
 */
static void listener_count(struct cm *cm, struct view_listener *l, uint32_t ref)
{
	struct cm_event *e;
	struct cm_id *id;

	cm_for_each_event(cm, e)
		l->waiting += e->id == ref && e->req.id;
	cm_for_each_id(cm, id)
		l->parked += id->flags & CM_F_PARKED && id->listener.id == ref;
}

bool view_listener(const struct view *v, struct view_listener *l)
{
	struct cm cm = v->cm;
	struct cm_id *id;

	while (cm.t && l->next < cm_ids(&cm)) {
		id = cm_id_at(&cm, ++l->next);
		if (!id || id->cma != CMA_LISTEN ||
		    !id_process(v, &cm, id, &l->process))
			continue;
		snprintf(l->address, sizeof(l->address), "%s",
			 address_word(&id->src));
		l->port = be16toh(id->src.in.sin_port);
		l->gen = id->gen;
		l->backlog = id->backlog_max;
		l->waiting = l->parked = 0;
		listener_count(&cm, l, l->next);
		return true;
	}
	return false;
}

static void stalls_of_listeners(struct stalls *s, const struct view *v)
{
	struct view_listener l = { 0 };
	struct stall *out;

	while (view_listener(v, &l)) {
		out = stall_add(s, "listens", &l.process,
				(uint64_t)l.gen << 32 | l.next);
		out->level = STALL_IDLE;
		stall_append(out, "rdma_listen at port %u of %s, backlog %u",
			     l.port, l.address, l.backlog);
		if (l.waiting || l.parked)
			stall_append(
				out,
				"; %u request%s not fetched, %u exceed%s the backlog",
				l.waiting, plural_is(l.waiting), l.parked,
				l.parked == 1 ? "s" : "");
		stall_ends(
			out,
			l.waiting ?
				"rdma_get_cm_event by %s" :
				"rdma_connect to the listener, or rdma_destroy_id by %s",
			process_name(&l.process));
	}
}

/* ---------------------------------------------------------- get_cm_event */

/* An event that an id can get next, and what raises it. */
struct awaited {
	const char *event, *ends;
};

/* The event that @id gets next, or NULL if its state has none. */
static const struct awaited *id_awaits(const struct cm_id *id)
{
	static const struct awaited
		request = { "CONNECT_REQUEST", "rdma_connect to the listener" },
		address = { "ADDR_RESOLVED", "the timeout" },
		route = { "ROUTE_RESOLVED", "the timeout" },
		response = { "CONNECT_RESPONSE or ESTABLISHED",
			     "rdma_accept or rdma_reject by the peer" },
		established = { "ESTABLISHED",
				"the first rdma_get_cm_event of the peer, or a message from the peer" },
		disconnected = { "DISCONNECTED",
				 "rdma_disconnect by either end" },
		timewait = { "TIMEWAIT_EXIT", "the end of the timewait state" };

	if (id->cma == CMA_LISTEN)
		return &request;
	if (id->cma == CMA_ADDR_QUERY)
		return &address;
	if (id->cma == CMA_ROUTE_QUERY)
		return &route;
	switch (id->cm) {
	case CM_REQ_SENT:
	case CM_SIDR_SENT:
		return &response;
	case CM_REP_SENT:
		return &established;
	case CM_REP_RCVD:
	case CM_ESTABLISHED:
	case CM_DREQ_SENT:
		return &disconnected;
	case CM_TIMEWAIT:
		return &timewait;
	default:
		return NULL;
	}
}

/*
 * Append where the event would come from: the listening address, or the peer
 * and its state.
 */
static void stall_append_peer(struct stall *out, const struct view *v,
			      struct cm *cm, const struct cm_id *id)
{
	const struct view_qp *q = id->qpn ? view_qp(v, id->qpn) : NULL;
	struct view_process p;

	if (id->cma == CMA_LISTEN) {
		stall_append(out, " at port %u of %s",
			     be16toh(id->src.in.sin_port),
			     address_word(&id->src));
		return;
	}
	stall_append(out, " of the connection with port %u of %s",
		     be16toh(id->dst.in.sin_port), address_word(&id->dst));
	if (id_process(v, cm, cm_deref(cm, id->peer), &p))
		stall_append(out, " (%s%s)", process_name(&p),
			     process_is_stopped(&p) ? ", which is stopped" :
						      "");
	else if (cm_is_remote(id))
		stall_append(out, " (on another host, which may be down)");
	if (q)
		stall_append(out, ", whose QP 0x%x is in %s", q->qpn,
			     reason_state_name(URXE_CONN_STATE(
				     load_relaxed(&q->sh.conn))));
}

static struct cm_chan *chan_find(struct cm *cm, uint64_t ino)
{
	struct cm_chan *c;

	cm_for_each_chan(cm, c)
		if (c->ino == ino && c->state == CM_CHAN_LIVE)
			return c;
	return NULL;
}

#define IDS_LISTED 3

void stall_of_cm_channel(struct stall *out, const struct view *v, uint64_t ino)
{
	struct cm cm = v->cm;
	struct cm_chan *c = cm.t ? chan_find(&cm, ino) : NULL;
	const struct awaited *a;
	struct cm_id *id;
	uint32_t ids = 0;

	if (!c)
		return;
	cm_for_each_id(&cm, id) {
		a = id->chan == cm_chan_ref(&cm, c) ? id_awaits(id) : NULL;
		if (!a || ids++ >= IDS_LISTED)
			continue;
		stall_append(out, "%s RDMA_CM_EVENT_%s",
			     ids > 1 ? ", or" : " for", a->event);
		stall_append_peer(out, v, &cm, id);
		stall_ends(out, "%s%s", ids > 1 ? "; " : "", a->ends);
	}
	if (ids > IDS_LISTED)
		stall_append(out, ", or an event of %u more ids",
			     ids - IDS_LISTED);
	if (ids)
		return;
	out->level = STALL_STALLS;
	stall_append(
		out,
		", and no rdma_cm_id of the channel is resolving, connecting, connected or listening: no event can arrive");
}

void stalls_of_cm(struct stalls *s, const struct view *v)
{
	struct cm cm = v->cm;
	struct cm_chan *c;
	struct cm_id *id;

	if (!cm.t)
		return;
	cm_for_each_chan(&cm, c)
		stall_of_chan(s, v, &cm, c);
	cm_for_each_id(&cm, id) {
		if (id->cm == CM_REQ_SENT || id->cm == CM_SIDR_SENT)
			stall_of_connect(s, v, &cm, id);
		else if (id->cm == CM_REQ_RCVD || id->cm == CM_SIDR_RCVD)
			stall_of_request(s, v, &cm, id);
	}
	stalls_of_listeners(s, v);
}
