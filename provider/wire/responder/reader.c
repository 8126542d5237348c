// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* READs in progress, served round-robin, see read.h. */
#define _GNU_SOURCE
#include <string.h>

#include "read.h"
#include "server.h"

struct reader *reader_of(struct wire_server *s, uint32_t qpn)
{
	uint32_t i;

	if (likely(!s->readers))
		return NULL;
	for (i = 0; i < READERS; i++)
		if (s->reader[i].qpn == qpn)
			return &s->reader[i];
	return NULL;
}

static void reader_end(struct wire_server *s, struct reader *q)
{
	q->qpn = 0;
	s->readers--;
}

bool reader_begin(struct request *r, const struct read *d)
{
	struct wire_server *s = r->s;
	uint32_t i;

	for (i = 0; i < READERS && s->reader[i].qpn; i++)
		;
	if (i == READERS)
		return false;
	s->reader[i] = (struct reader){
		.qpn = r->c->qpn,
		.type = s->me.type,
		.want = r->c->want,
		.path = r->c->path,
		.back = r->v->path,
		.n = 1,
		.read = { *d },
	};
	s->readers++;
	return true;
}

bool reader_put(struct reader *q, const struct read *d)
{
	uint32_t i = 0;

	while (i < q->n && !wire_psn_before(d->psn, q->read[i].end))
		i++;
	if (i < q->n && !wire_psn_before(d->psn, q->read[i].first)) {
		/*
		 * Repeat from the PSN that the requester misses, unless it is
		 * still to be sent.
		 */
		if (!wire_psn_before(q->read[i].psn, d->psn))
			q->read[i] = *d;
		return true;
	}
	if (q->n == READS)
		return false;
	memmove(&q->read[i + 1], &q->read[i], (q->n - i) * sizeof(*d));
	q->read[i] = *d;
	q->n++;
	return true;
}

/* Return true if a request of that opcode is answered by an ACK only. */
static bool is_acked(uint32_t op)
{
	return op < WIRE_READ_REQUEST || op == WIRE_SEND_LAST_INV ||
	       op == WIRE_SEND_ONLY_INV;
}

bool reader_holds_back(struct request *r, int32_t behind)
{
	struct reader *q = reader_of(r->s, r->c->qpn);

	if (likely(!q))
		return false;
	/* the QP has a new connection */
	if (q->want != r->c->want || q->path != r->c->path) {
		reader_end(r->s, q);
		return false;
	}
	if (behind <= 0 && r->op == WIRE_READ_REQUEST)
		return false;
	if (behind < 0 && is_acked(r->op))
		q->due = true;
	else if (behind < 0 || !reorder_put(r, behind))
		q->missed = true;
	return true;
}

/*
 * All READs are complete: execute the packets that were buffered meanwhile,
 * or send the ACK or NAK that was deferred.
 */
static void reader_is_through(struct request *r, struct reader *q)
{
	const struct reader held = *q; /* another READ may use the entry */

	reader_end(r->s, q);
	if (!held.missed && !held.due && !r->v->reorder.generation)
		return;
	if (held.missed || r->v->reorder.generation)
		/* the requester has retransmitted since that NAK */
		r->st->nak_sent = 0;
	server_resume(r->s, r->c->qpn, held.type, &held);
}

static void reader_portion(struct request *r, struct reader *q)
{
	struct read *d = &q->read[0];
	enum response resp = shared_use_srq_duplicate(r);

	if (!resp)
		resp = read_portion(r, d);
	if (resp) {
		if (!d->duplicate)
			read_refuse(r, d, resp);
		reader_end(r->s, q);
		return;
	}
	if (!read_is_done(d))
		return;
	q->n--;
	memmove(d, d + 1, q->n * sizeof(*d));
	if (!q->n)
		reader_is_through(r, q);
}

/* Continue q, unless the connection has changed. */
static void reader_continue(struct wire_server *s, struct reader *q)
{
	const struct wire_packet p = {
		.bth = { .qpn = q->qpn },
		.xrceth = { .srqn = q->read[0].srqn },
	};
	struct request r = { .s = s, .p = &p };

	if (!request_find(&r, q->type) || !request_is_accepted(&r) ||
	    q->want != r.c->want || q->path != r.c->path) {
		reader_end(s, q);
		return;
	}
	r.v->path = q->back;
	reader_portion(&r, q);
}

void readers_serve_next(struct wire_server *s)
{
	uint32_t i;

	for (i = 0; i < READERS; i++) {
		s->turn = (s->turn + 1) % READERS;
		if (s->reader[s->turn].qpn) {
			reader_continue(s, &s->reader[s->turn]);
			return;
		}
	}
}
