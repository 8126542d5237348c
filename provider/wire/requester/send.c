// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wire requester: builds and sends the packets of WRs, as the window allows.
 */
#include <string.h>

#include "base/clock.h"
#include "engine/exec/part.h"
#include "engine/exec/responder.h"
#include "engine/exec/retry.h"
#include "engine/copy/transfer.h"
#include "engine/qp/why.h"
#include "engine/qp/wqe.h"
#include "message.h"
#include "wire/socket/port.h"
#include "state.h"

#define FETCH_BYTES (64u << 10) /* bytes of one request */
#define FETCH_PACKETS 32u /* packets of one request */

/* Return how many bytes of responses fit into the inbox. */
static uint32_t inbox_room(const struct wire_requester *r)
{
	return inbox_bytes(r->inbox) / 4 * 3;
}

/*
 * The responses to two requests fit into the inbox, unless this context is the
 * socket owner: then its thread processes most responses without the inbox.
 */
uint32_t fetch_most(const struct urxe_qp *qp, const struct wire_requester *r,
		    const struct urxe_wqe *w)
{
	const uint32_t half = inbox_room(r) / 2;
	uint32_t bytes = FETCH_BYTES, most;

	if (w->opcode != IBV_WR_RDMA_READ)
		return 1;
	if (!load_relaxed(&r->ctx->receives) && half < bytes)
		bytes = half;
	most = bytes >> qp->mtu_shift;
	if (!most) /* the inbox is damaged */
		most = 1;
	return most < FETCH_PACKETS ? most : FETCH_PACKETS;
}

/*
 * Return the number of response packets that a request from packet i of m
 * asks for.  Requests end at fixed boundaries, so that a retransmitted one
 * asks for nothing that was not asked for before (IB 9.7.5.1.3).
 */
static uint32_t fetch_packets(const struct message *m, uint32_t i)
{
	const uint32_t n = m->fetch - i % m->fetch;

	return m->packets - i < n ? m->packets - i : n;
}

/*
 * May data of that many bytes be requested now?  All that is requested has to
 * fit into the inbox, and into the buffer of the socket if it arrives at once,
 * except what has arrived early.
 */
static bool fetch_fits(const struct urxe_qp *qp, const struct wire_requester *r,
		       uint32_t bytes)
{
	const uint32_t inbox = inbox_room(r);
	const uint64_t arrived = (uint64_t)r->early.n << qp->mtu_shift;

	return !r->fetched ||
	       r->fetched + bytes <= arrived + (inbox < r->socket_bytes ?
							inbox :
							r->socket_bytes);
}

static bool fetch_has_room(struct urxe_qp *qp, struct wire_requester *r,
			   const struct urxe_wqe *w)
{
	const struct message *m = message_at(r, r->at);
	uint32_t i = (r->window.next - m->psn) & WIRE_PSN_MASK;
	/*
	 * 0: READs and atomics were refused; annex A19 operations go singly
	 */
	uint32_t most = qp->attr.max_rd_atomic ? qp->attr.max_rd_atomic : 1;
	const uint32_t n = fetch_packets(m, i);
	const uint32_t bytes = n << qp->mtu_shift;

	if (r->fetches >= (most < FETCHES_MAX ? most : FETCHES_MAX))
		return false;
	/* a fetch may be larger than the window: then send it alone */
	if (!window_is_quiet(&r->window) && n > window_room(&r->window))
		return false;
	return w->opcode != IBV_WR_RDMA_READ ||
	       (fetch_fits(qp, r, bytes) && budget_has_room(qp, r, bytes));
}

/* The message being sent. */
struct sending {
	struct urxe_qp *qp;
	struct wire_port *port;
	struct wire_path path;
	struct wire_window *window;
	const struct urxe_wqe *w;
	const struct message *m;
	uint32_t room; /* packets that the pace of the port allows */
	uint64_t bytes; /* of the packets that were added */
	struct urxe_seg seg[URXE_MAX_SGE], *from;
};

static bool sends_payload(const struct urxe_wqe *w)
{
	return w->length && (WQE_INLINE_OPS & WQE_BIT(w->opcode) ||
			     (w->opcode == URXE_WR_ATOMIC_WRITE && w->num_sge));
}

/*
 * Resolve the SGEs of the payload from packet i on.  Returns false if an lkey
 * is not valid.
 */
static bool sending_gather(struct sending *s, uint32_t i)
{
	if (!sends_payload(s->w))
		return true;
	memset(s->seg, 0, sizeof(s->seg));
	if (part_gather(s->qp, s->w, false, s->seg) < 0)
		return false;
	s->from = part_skip(s->seg, (uint64_t)i << s->qp->mtu_shift);
	return true;
}

static bool sending_fill(struct sending *s, uint8_t *to, uint32_t n)
{
	struct urxe_seg dst = { .ptr = (char *)to, .len = n };

	if (!n)
		return true;
	if (s->w->opcode == URXE_WR_ATOMIC_WRITE && !s->w->num_sge) {
		memcpy(to, s->w->write_data, n);
		return true;
	}
	if (transfer(&dst, s->from, n, s->qp->ctx, false) != TRANSFER_OK)
		return false;
	s->from = part_skip(s->from, n);
	return true;
}

/*
 * Send packet i; of a fetch, the request for `more` packets.  Returns false
 * on error.
 */
static bool sending_packet(struct sending *s, uint32_t i, uint32_t more)
{
	uint32_t n = s->m->packets;
	struct wire_packet p;
	uint8_t *to;

	message_packet(s->qp, s->w, i, n, more, &p);
	p.bth.psn = wire_psn_add(s->m->psn, i);
	/* the last packet, and at the window's intervals */
	p.bth.ack_request = s->qp->type != IBV_QPT_UC &&
			    (i + more == n || s->window->repeats ||
			     window_needs_ackreq(s->window));
	to = port_add(s->port, &s->path, &p);
	if (to && !sending_fill(s, to, p.length)) {
		port_drop(s->port);
		return false;
	}
	if (!to)
		return false;
	window_sent(s->window, more, p.bth.ack_request);
	s->bytes += p.length + WIRE_HEADERS;
	return true;
}

/*
 * Send as many packets of the message as the window allows.  Returns false on
 * error.
 */
static bool sending_message(struct sending *s, struct wire_requester *r)
{
	struct wire_window *w = &r->window;
	uint32_t i = (w->next - s->m->psn) & WIRE_PSN_MASK, n;
	uint32_t room = window_room(w), left = s->m->packets - i;
	const bool begins = !w->repeats;
	const bool read = s->w->opcode == IBV_WR_RDMA_READ;

	n = room < left ? room : left;
	if (message_fetches(s->w)) {
		n = fetch_packets(s->m, i);
		if (w->repeats && !w->bursts && n > room)
			n = room; /* the packets that are missing */
		if (!sending_packet(s, i, n))
			return false;
		if (begins)
			fetch_begin(s->qp, r, wire_psn_add(s->m->psn, i), n,
				    read ? n << s->qp->mtu_shift : 0);
		return true;
	}
	if (n > s->room)
		n = s->room;
	s->room -= n;
	for (; n; n--, i++)
		if (!sending_packet(s, i, 1))
			return false;
	return true;
}

bool requester_may_send(struct urxe_qp *qp, struct wire_requester *r)
{
	const struct urxe_wqe *w;

	if (r->at == r->end || r->rnr_until || r->paced_until ||
	    !window_room(&r->window) || (r->failed && r->at == r->failed_at))
		return false;
	w = sq_slot(&qp->sq, r->at);
	return !message_fetches(w) || r->window.repeats ||
	       fetch_has_room(qp, r, w);
}

/*
 * Send the rest of the message at r->at, as far as allowed now, but only up
 * to the end of a repetition.  Returns false on error.
 */
static bool send_message(struct urxe_qp *qp, struct wire_requester *r,
			 struct sending *s)
{
	const bool repeats = r->window.repeats;

	s->w = sq_slot(&qp->sq, r->at);
	s->m = message_at(r, r->at);
	if (!sending_gather(s, (r->window.next - s->m->psn) & WIRE_PSN_MASK))
		return false;
	while (s->room && r->window.repeats == repeats &&
	       wire_psn_before(r->window.next, message_end(r, r->at)) &&
	       requester_may_send(qp, r))
		if (!sending_message(s, r))
			return false;
	return true;
}

void requester_skip_sent(struct wire_requester *r)
{
	while (r->at != r->end &&
	       !wire_psn_before(r->window.next, message_end(r, r->at)))
		r->at++;
}

static void send_all(struct urxe_qp *qp, struct wire_requester *r,
		     struct sending *s)
{
	for (requester_skip_sent(r); s->room && requester_may_send(qp, r);
	     requester_skip_sent(r)) {
		if (!send_message(qp, r, s)) {
			r->failed = IBV_WC_LOC_PROT_ERR;
			r->failed_at = r->at;
		}
		if (unlikely(r->has_gaps) && !r->window.repeats)
			fetch_next_gap(qp, r);
	}
}

/*
 * The local ACK timer may take up to four times the `timeout` attribute (IB
 * specification, 9.7.6.1.3).  From the third try on it does, so that a busy
 * peer is not taken for dead.
 */
uint64_t requester_timeout(const struct urxe_qp *qp,
			   const struct wire_requester *r)
{
	const unsigned int tries = qp->attr.retry_cnt - r->left;

	return retry_ack_ns(qp->attr.timeout) << (tries < 2 ? tries : 2);
}

/* Return when to send the next probe; 0: never. */
static uint64_t probe_time(const struct wire_requester *r, uint64_t now)
{
	const uint64_t at = now + (rtt_probe_after(&r->rtt) << r->probes);

	return r->left && r->probes < PROBES && at < r->deadline ? at : 0;
}

void requester_arm(const struct urxe_qp *qp, struct wire_requester *r,
		   bool anew)
{
	uint64_t period = requester_timeout(qp, r), now = 0;

	if (anew && r->rtt.sent_at) {
		now = clock_now();
		rtt_answered(&r->rtt, r->window.una, now);
	}
	if (window_is_quiet(&r->window) || !period || qp->type == IBV_QPT_UC) {
		r->deadline = r->probe_at = 0;
	} else if (anew || !r->deadline || (r->probes && !r->probe_at)) {
		now = now ? now : clock_now();
		if (anew || !r->deadline)
			r->deadline = now + period;
		r->probe_at = probe_time(r, now);
	}
}

/* UC: send as the pace of the port allows.  No response is expected. */
static void send_paced(struct urxe_qp *qp, struct wire_requester *r,
		       struct sending *s)
{
	const uint32_t most = (1u << qp->mtu_shift) + WIRE_HEADERS;
	const uint64_t now = clock_now();

	s->room = port_room(s->port, most, now);
	send_all(qp, r, s);
	port_pace(s->port, s->bytes, now);
	if (!s->room)
		r->paced_until = port_paced_until(s->port);
}

void requester_send(struct urxe_qp *qp, struct wire_requester *r)
{
	struct sending s = { .qp = qp, .window = &r->window };
	const uint32_t high = r->window.high;
	int err = 0;

	requester_skip_sent(r);
	if (!requester_may_send(qp, r))
		return;
	message_path(qp, &s.path);
	s.port = port_begin(s.path.sgid, &err);
	if (!s.port) {
		/* treat as packet loss: the address may come back */
		window_sent(&r->window, window_room(&r->window), false);
		requester_skip_sent(r);
	} else {
		s.room = UINT32_MAX;
		r->socket_bytes = port_buffer(s.port);
		if (qp->type == IBV_QPT_UC)
			send_paced(qp, r, &s);
		else
			send_all(qp, r, &s);
		err = port_end(s.port, qp->ctx->fabric);
	}
	if (qp->type == IBV_QPT_UC)
		window_answered(&r->window, r->window.next);
	r->unsent = err; /* the reason if no response arrives */
	if (!r->rtt.sent_at && r->window.high != high && qp->type != IBV_QPT_UC)
		rtt_begin(&r->rtt, high, clock_now());
	requester_arm(qp, r, false);
}
