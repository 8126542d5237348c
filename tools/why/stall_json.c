// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Waits and listeners (stall.h) as JSON. */
#include "stall_json.h"

void json_put_process(struct json *j, const struct view_process *p)
{
	const char state[2] = { p->state };

	json_put_number(j, "pid", (uint64_t)(p->pid > 0 ? p->pid : 0));
	json_put_string(j, "program", p->comm);
	json_put_string(j, "process_state", state);
}

void json_put_or_null(struct json *j, const char *name, bool is, uint64_t n)
{
	if (is)
		json_put_number(j, name, n);
	else
		json_put_null(j, name);
}

static void stall_put(struct json *j, const struct stall *s,
		      const struct view *v)
{
	char on[VIEW_ON];

	json_open(j, NULL, '{');
	json_put_string(j, "kind", s->kind);
	json_put_bool(j, "stalls", s->level == STALL_STALLS);
	json_put_process(j, &s->process);
	json_put_or_null(j, "tid", s->tid, s->tid);
	json_put_or_null(j, "qpn", s->qpn, s->qpn);
	view_qp_on(v, s->qpn, on);
	if (*on)
		json_put_string(j, "device", on + strlen(" at "));
	json_put_or_null(j, "cq", s->cq, s->cq);
	json_put_or_null(j, "peer", s->peer, s->peer);
	json_put_or_null(j, "wr_id", s->has_wr, s->wr_id);
	json_put_number(j, "queued", s->queued);
	json_put_double(j, "seconds",
			v->at > s->since ? (double)(v->at - s->since) / 1e9 :
					   0);
	json_put_bool(j, "longer", s->longer);
	json_put_string(j, "what", s->what);
	json_put_string(j, "ends", s->ends);
	json_close(j, '}');
}

void stalls_put(struct json *j, const struct stalls *s, const struct view *v,
		int32_t pid, uint32_t qpn)
{
	uint32_t i;

	json_open(j, "stalls", '[');
	for (i = 0; i < s->n; i++)
		if (stall_matches(&s->list[i], v, pid, qpn))
			stall_put(j, &s->list[i], v);
	json_close(j, ']');
}

void listeners_put(struct json *j, const struct view *v)
{
	struct view_listener l = { 0 };

	json_open(j, "listeners", '[');
	while (view_listener(v, &l)) {
		json_open(j, NULL, '{');
		json_put_process(j, &l.process);
		json_put_string(j, "address", l.address);
		json_put_number(j, "port", l.port);
		json_put_number(j, "backlog", l.backlog);
		json_put_number(j, "waiting", l.waiting);
		json_put_number(j, "parked", l.parked);
		json_close(j, '}');
	}
	json_close(j, ']');
}
