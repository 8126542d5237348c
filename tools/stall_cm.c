// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What waits in the connection manager. */
#include "stall.h"

static const char *event_word(uint32_t event)
{
	static const char *const words[] = {
		"ADDR_RESOLVED",  "ADDR_ERROR",	       "ROUTE_RESOLVED",
		"ROUTE_ERROR",	  "CONNECT_REQUEST",   "CONNECT_RESPONSE",
		"CONNECT_ERROR",  "UNREACHABLE",       "REJECTED",
		"ESTABLISHED",	  "DISCONNECTED",      "DEVICE_REMOVAL",
		"MULTICAST_JOIN", "MULTICAST_ERROR",   "ADDR_CHANGE",
		"TIMEWAIT_EXIT",  "ADDRINFO_RESOLVED", "ADDRINFO_ERROR",
		"USER",		  "INTERNAL",
	};

	return event < sizeof(words) / sizeof(*words) ? words[event] : "?";
}

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
	/* the same event at the head: its number counts on */
	out = stall_add(s, "cm-event", &p, e ? e->order : 0);
	stall_says(out, "%u rdma_cm event%s not read", c->events,
		   c->events == 1 ? " is" : "s are");
	if (e)
		stall_says(out, ", the oldest RDMA_CM_EVENT_%s",
			   event_word(e->resp.event));
	stall_ends(out, "rdma_get_cm_event by %s", process_name(&p));
}

/* Whose channel the id has; false: none that lives. */
static bool id_process(const struct view *v, struct cm *cm,
		       const struct cm_id *id, struct view_process *out)
{
	const struct cm_chan *c = id ? cm_chan_at(cm, id->chan) : NULL;

	if (!c || c->state != CM_CHAN_LIVE)
		return false;
	*out = chan_process(v, c);
	return out->state != '-';
}

/* Its request was sent, and not answered. */
static void stall_of_connect(struct stalls *s, const struct view *v,
			     struct cm *cm, const struct cm_id *id)
{
	struct view_process p, q;
	struct stall *out;
	bool parked = id->flags & CM_F_PARKED;

	if (!id_process(v, cm, id, &p))
		return;
	out = stall_add(s, "cm-connect", &p,
			(uint64_t)id->gen << 32 | cm_id_ref(cm, id));
	stall_says(out, "rdma_connect to port %u waits for an answer",
		   be16toh(id->dst.in.sin_port));
	if (id->flags & CM_F_UNSENT) {
		stall_says(out, ": the port is down");
		stall_ends(out, "urxe port up");
	} else if (id_process(v, cm,
			      cm_deref(cm, parked ? id->listener : id->peer),
			      &q)) {
		stall_says(out,
			   parked ? ": the backlog of %s is full" :
				    ": %s has not accepted",
			   process_name(&q));
		if (process_is_stopped(&q))
			stall_says(out, ", which is stopped");
		stall_ends(out,
			   parked ? "rdma_get_cm_event by %s" :
				    "rdma_accept or rdma_reject by %s",
			   process_name(&q));
	} else {
		stall_says(out, ": nobody is there");
		stall_ends(out, "its timeout");
	}
}

/* A request was fetched, and not answered. */
static void stall_of_request(struct stalls *s, const struct view *v,
			     struct cm *cm, const struct cm_id *id)
{
	struct view_process p, q;
	struct stall *out;

	if (!id_process(v, cm, id, &p))
		return;
	out = stall_add(s, "cm-accept", &p,
			(uint64_t)id->gen << 32 | cm_id_ref(cm, id));
	stall_says(out, "a connection request waits to be accepted");
	if (id_process(v, cm, cm_deref(cm, id->peer), &q))
		stall_says(out, ", of %s", process_name(&q));
	stall_ends(out, "rdma_accept or rdma_reject by %s", process_name(&p));
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
}
