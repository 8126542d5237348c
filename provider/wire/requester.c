// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The requester on the wire.  A WR is in flight from its beginning to its
 * answer, which the holder of the fabric's socket puts into the QP's inbox:
 *
 *	begin	checks this side, gives the message its PSNs, sends what the
 *		window has room for
 *	progress	takes answers, looks at the clock, sends on
 *
 * Packets go out in the order of their PSNs, from `next` on; what is lost is
 * sent again from the oldest PSN that is not answered (go-back-N), and its
 * bytes are read again then: IB leaves them to the device until the completion.
 *
 * What is answered with data (READ, atomics, and annex A19's) is a *fetch*: a
 * request, which no ACK of a later PSN answers.  A long READ is several of
 * them.
 *
 * Who polls takes the answers; only if nobody has looked for a while the holder
 * wakes the service thread, which does (shared/wire.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/observe.h"
#include "engine/part.h"
#include "engine/process.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/service.h"
#include "engine/wait.h"
#include "engine/why.h"
#include "engine/wqe.h"
#include "count.h"
#include "inbox.h"
#include "message.h"
#include "port.h"
#include "requester.h"
#include "window.h"

#define FETCHES URXE_MAX_RD_ATOM
/* What READs have answered at once has to have room in the inbox. */
#define FETCH_BYTES (64u << 10) /* one request ... */
#define FETCH_PACKETS 32u /* ... of so many packets at most */
#define FETCHED_BYTES (URXE_WIRE_INBOX_BYTES / 4 * 3) /* all of them */
/* A quarter of all PSNs may be begun: so before and behind stay apart. */
#define PSNS_MOST (1u << 22)
#define RNR_ENDLESS 7

/* The WR in a slot; of no packets: one that is carried out, or fails, at this
 * side. */
struct message {
	uint32_t psn, packets;
};

/* A request that waits for data. */
struct fetch {
	uint32_t psn, packets;
};

struct wire_requester {
	const struct urxe_carrier *before; /* what the QP had */
	struct urxe_wire_inbox *inbox;
	int32_t pid; /* whose flight it is */
	uint32_t mask;
	struct wire_window window;
	uint32_t at; /* the slot that window.next is in ... */
	uint32_t end; /* ... and behind the last one that was begun */
	struct fetch fetch[FETCHES]; /* out, from first on */
	uint32_t first, fetches;
	uint64_t fetched; /* bytes that they bring */
	uint64_t deadline; /* of the oldest answer; 0: none is waited for */
	uint64_t rnr_until; /* 0: no */
	uint8_t left, rnr_left; /* tries */
	bool waits; /* and was said to */
	bool gone_back; /* for what una is */
	uint32_t again; /* how often */
	enum ibv_wc_status failed; /* at this side, as it went out: ... */
	uint32_t failed_at; /* ... the WR in this slot, which does no more */
	struct message message[]; /* by slots */
};

static struct message *message_at(struct wire_requester *r, uint32_t slot)
{
	return &r->message[slot & r->mask];
}

/* The WR in that slot is begun. */
static void message_begin(struct wire_requester *r, uint32_t slot,
			  uint32_t packets)
{
	struct message *m = message_at(r, slot);

	m->packets = packets;
	m->psn = window_extend(&r->window, packets);
	r->end = slot + 1;
}

static uint32_t message_end(struct wire_requester *r, uint32_t slot)
{
	const struct message *m = message_at(r, slot);

	return wire_psn_add(m->psn, m->packets);
}

/* ------------------------------------------------------- sending */

/*
 * How many packets a request from packet i of w on brings.  Where one ends is
 * always the same, so that one that is sent again asks for nothing that was not
 * asked for before it (IB 9.7.5.1.3).
 */
static uint32_t fetch_packets(const struct urxe_qp *qp,
			      const struct urxe_wqe *w, const struct message *m,
			      uint32_t i)
{
	uint32_t most = FETCH_BYTES >> qp->mtu_shift;

	if (w->opcode != IBV_WR_RDMA_READ)
		return 1;
	if (most > FETCH_PACKETS)
		most = FETCH_PACKETS;
	most -= i % most;
	return m->packets - i < most ? m->packets - i : most;
}

static bool fetch_has_room(const struct urxe_qp *qp, struct wire_requester *r,
			   const struct urxe_wqe *w)
{
	const struct message *m = message_at(r, r->at);
	uint32_t i = (r->window.next - m->psn) & WIRE_PSN_MASK;
	uint32_t most = qp->attr.max_rd_atomic;

	if (r->fetches >= (most < FETCHES ? most : FETCHES) ||
	    r->fetched + FETCH_BYTES > FETCHED_BYTES)
		return false;
	/* the window is for all of it, but it may be larger than that */
	return window_is_quiet(&r->window) ||
	       fetch_packets(qp, w, m, i) <= window_room(&r->window);
}

static void fetch_begin(const struct urxe_qp *qp, struct wire_requester *r,
			uint32_t psn, uint32_t packets)
{
	r->fetch[(r->first + r->fetches++) % FETCHES] =
		(struct fetch){ psn, packets };
	r->fetched += (uint64_t)packets << qp->mtu_shift;
}

static void fetch_end(const struct urxe_qp *qp, struct wire_requester *r)
{
	r->fetched -= (uint64_t)r->fetch[r->first].packets << qp->mtu_shift;
	r->first = (r->first + 1) % FETCHES;
	r->fetches--;
}

static void fetch_forget(struct wire_requester *r)
{
	r->fetches = 0;
	r->fetched = 0;
}

static void counted(const struct urxe_qp *qp, enum urxe_counter which)
{
	count_request(qp->ctx->fabric, which);
}

static bool is_send(const struct urxe_wqe *w)
{
	return w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM ||
	       w->opcode == IBV_WR_SEND_WITH_INV;
}

/* A message, as it is being sent. */
struct sending {
	struct urxe_qp *qp;
	struct wire_port *port;
	struct wire_path path;
	struct wire_window *window;
	const struct urxe_wqe *w;
	const struct message *m;
	struct urxe_seg seg[URXE_MAX_SGE], *from;
};

static bool sends_payload(const struct urxe_wqe *w)
{
	return w->length && (WQE_INLINE_OPS & WQE_BIT(w->opcode) ||
			     (w->opcode == URXE_WR_ATOMIC_WRITE && w->num_sge));
}

/* Its bytes from packet i on.  False: a key does not hold. */
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

/* Packet i; of a fetch the request for `more` packets.  False: as above. */
static bool sending_packet(struct sending *s, uint32_t i, uint32_t more)
{
	uint32_t n = s->m->packets;
	struct wire_packet p;
	uint8_t *to;

	message_packet(s->qp, s->w, i, n, more, &p);
	p.bth.psn = wire_psn_add(s->m->psn, i);
	/* at the end of a message, and in between */
	p.bth.ack_request = s->qp->type != IBV_QPT_UC &&
			    (i + more == n || window_asks(s->window));
	to = port_add(s->port, &s->path, &p);
	if (to && !sending_fill(s, to, p.length)) {
		port_drop(s->port);
		return false;
	}
	if (!to)
		return false;
	window_sent(s->window, more, p.bth.ack_request);
	return true;
}

/* As many packets of s's message as there is room for.  False: as above. */
static bool sending_message(struct sending *s, struct wire_requester *r)
{
	struct wire_window *w = &r->window;
	uint32_t i = (w->next - s->m->psn) & WIRE_PSN_MASK, n;
	uint32_t room = window_room(w), left = s->m->packets - i;

	n = room < left ? room : left;
	if (message_fetches(s->w)) {
		n = fetch_packets(s->qp, s->w, s->m, i);
		if (!sending_packet(s, i, n))
			return false;
		fetch_begin(s->qp, r, wire_psn_add(s->m->psn, i), n);
		return true;
	}
	for (; n; n--, i++)
		if (!sending_packet(s, i, 1))
			return false;
	return true;
}

static bool may_send(const struct urxe_qp *qp, struct wire_requester *r)
{
	const struct urxe_wqe *w;

	if (r->at == r->end || r->rnr_until || !window_room(&r->window) ||
	    (r->failed && r->at == r->failed_at))
		return false;
	w = sq_slot(&qp->sq, r->at);
	return !message_fetches(w) || fetch_has_room(qp, r, w);
}

static void __attribute__((cold))
note_not_sent(const struct urxe_qp *qp, int err)
{
	why_note(WIRE_SEND, qp->attr.dest_qp_num, (uint64_t)-err);
}

/* What is left of the message at r->at, as far as it may go now.  False: as
 * above. */
static bool send_message(struct urxe_qp *qp, struct wire_requester *r,
			 struct sending *s)
{
	s->w = sq_slot(&qp->sq, r->at);
	s->m = message_at(r, r->at);
	if (!sending_gather(s, (r->window.next - s->m->psn) & WIRE_PSN_MASK))
		return false;
	while (r->window.next != message_end(r, r->at) && may_send(qp, r))
		if (!sending_message(s, r))
			return false;
	return true;
}

/* r->at goes over what is out. */
static void skip_sent(struct wire_requester *r)
{
	while (r->at != r->end &&
	       !wire_psn_before(r->window.next, message_end(r, r->at)))
		r->at++;
}

static void send_all(struct urxe_qp *qp, struct wire_requester *r,
		     struct sending *s)
{
	for (skip_sent(r); may_send(qp, r); skip_sent(r))
		if (!send_message(qp, r, s)) {
			r->failed = IBV_WC_LOC_PROT_ERR;
			r->failed_at = r->at;
		}
}

static void arm(const struct urxe_qp *qp, struct wire_requester *r, bool anew)
{
	uint64_t period = retry_ack_ns(qp->attr.timeout);

	if (window_is_quiet(&r->window) || !period)
		r->deadline = 0;
	else if (anew || !r->deadline)
		r->deadline = clock_now() + period;
}

/* What may go out does; the guard is up. */
static void requester_send(struct urxe_qp *qp, struct wire_requester *r)
{
	struct sending s = { .qp = qp, .window = &r->window };
	int err = 0;

	skip_sent(r);
	if (!may_send(qp, r))
		return;
	message_path(qp, &s.path);
	s.port = port_begin(s.path.sgid, &err);
	if (!s.port) {
		/* as if it were lost: the address may come back */
		window_sent(&r->window, window_room(&r->window), false);
		skip_sent(r);
	} else {
		send_all(qp, r, &s);
		err = port_end(s.port, qp->ctx->fabric);
	}
	if (err)
		note_not_sent(qp, err);
	arm(qp, r, false);
}

/* ------------------------------------------------------- tries */

static void tries_begin(const struct urxe_qp *qp, struct wire_requester *r)
{
	r->left = qp->attr.retry_cnt;
	r->rnr_left = qp->attr.rnr_retry;
	r->gone_back = false;
	r->again = 0;
}

static void wait_shown(struct urxe_qp *qp, struct wire_requester *r,
		       enum urxe_stall_kind kind, uint64_t until)
{
	struct urxe_wait *w = &qp->sh->wait;
	bool rnr = kind == STALL_RNR;
	uint8_t left = rnr ? r->rnr_left : r->left;

	wait_begin(qp, rnr ? URXE_WAIT_RECEIVE : URXE_WAIT_ANSWER, qp->sq.done);
	store_relaxed(&w->left, rnr && qp->attr.rnr_retry == RNR_ENDLESS ?
					URXE_WAIT_ENDLESS :
					left);
	store_relaxed(&w->until, until);
	observe(r->waits ? OBSERVE_AGAIN : OBSERVE_WAITS, qp,
		sq_slot(&qp->sq, qp->sq.done), kind);
	if (!r->waits)
		why_waits(qp, sq_slot(&qp->sq, qp->sq.done));
	r->waits = true;
}

static void wait_over(struct urxe_qp *qp, struct wire_requester *r)
{
	if (!r->waits)
		return;
	r->waits = false;
	wait_end(qp);
}

static void go_back(struct urxe_qp *qp, struct wire_requester *r, bool lost)
{
	r->again++;
	window_go_back(&r->window, lost);
	fetch_forget(r);
	r->at = qp->sq.done;
	r->deadline = 0;
}

/* The oldest WR ends so, and with it the QP; the guard is down. */
static void requester_ends(struct urxe_qp *qp, enum ibv_wc_status status)
{
	flight_answer(qp, qp->sq.done, status);
}

/* What is out goes out again, because packets were lost; false: it was tried
 * often enough, and the QP is broken. */
static bool try_again(struct urxe_qp *qp, struct wire_requester *r)
{
	why_note(WIRE_SILENT, qp->attr.dest_qp_num, r->window.una,
		 qp->attr.retry_cnt);
	if (!r->left) {
		counted(qp, URXE_CNT_RETRY_EXC);
		requester_ends(qp, IBV_WC_RETRY_EXC_ERR);
		return false;
	}
	r->left--;
	counted(qp, URXE_CNT_COMP_RETRY);
	go_back(qp, r, true);
	wait_shown(qp, r, STALL_TRANSPORT,
		   clock_now() + retry_ack_ns(qp->attr.timeout));
	return true;
}

/* ------------------------------------------------------- answers */

/* All before psn is answered: complete what that completes.  The guard is
 * down. */
static void retire(struct urxe_qp *qp, struct wire_requester *r, uint32_t psn)
{
	const struct urxe_sq *sq = &qp->sq;

	if (!window_answered(&r->window, psn))
		return;
	wait_over(qp, r);
	tries_begin(qp, r);
	while (r->fetches &&
	       !wire_psn_before(psn, wire_psn_add(r->fetch[r->first].psn,
						  r->fetch[r->first].packets)))
		fetch_end(qp, r);
	arm(qp, r, true);
	while (sq->done != sq->begun &&
	       !wire_psn_before(psn, message_end(r, sq->done))) {
		observe(OBSERVE_ARRIVES, qp, sq_slot(sq, sq->done),
			qp->attr.dest_qp_num);
		if (is_send(sq_slot(sq, sq->done)))
			counted(qp, URXE_CNT_SENDS);
		flight_answer(qp, sq->done, IBV_WC_SUCCESS);
	}
	if (!qp->flying)
		return; /* also: one behind them had failed, and broke the QP */
	/* what was sent again in vain */
	if ((int32_t)(r->at - sq->done) < 0)
		r->at = sq->done;
	skip_sent(r);
}

/* The same, but not the fetch that comes first.  False: there is one. */
static bool retire_up_to(struct urxe_qp *qp, struct wire_requester *r,
			 uint32_t psn)
{
	const struct fetch *f = &r->fetch[r->first];
	uint32_t at = r->window.una;

	if (!r->fetches ||
	    !wire_psn_before(wire_psn_before(f->psn, at) ? at : f->psn, psn)) {
		retire(qp, r, psn);
		return true;
	}
	if (wire_psn_before(at, f->psn))
		retire(qp, r, f->psn);
	return false;
}

/* Something before what was answered is missing: once for each place.  That is
 * a try, too (IB 9.9.2.4.1). */
static void missing(struct urxe_qp *qp, struct wire_requester *r)
{
	if (r->gone_back || !qp->flying)
		return;
	r->gone_back = true;
	try_again(qp, r);
}

/* The bytes of answer a to w, from off on; false: a key does not hold. */
static bool place_bytes(struct urxe_qp *qp, const struct urxe_wqe *w,
			uint64_t off, const struct urxe_seg *from,
			uint32_t bytes)
{
	struct urxe_seg seg[URXE_MAX_SGE] = { 0 };
	bool done;

	qp_guard_raise(qp, GUARD_NOTHING);
	done = part_gather(qp, w, true, seg) >= 0 &&
	       transfer(part_skip(seg, off), from, bytes, qp->ctx, true) ==
		       TRANSFER_OK;
	guard_lower(qp->guard);
	return done;
}

static bool place_answer(struct urxe_qp *qp, const struct urxe_wqe *w,
			 uint32_t i, const struct inbox_answer *a)
{
	uint64_t off = (uint64_t)i << qp->mtu_shift;
	struct urxe_seg from[2] = {
		{ .ptr = (char *)(uintptr_t)a->piece[0], .len = a->bytes[0] },
		{ .ptr = (char *)(uintptr_t)a->piece[1], .len = a->bytes[1] },
	};
	uint64_t old = a->head.original;

	if (WQE_ATOMIC_OPS & WQE_BIT(w->opcode)) {
		if (urxe_observers)
			observe_fetch(qp, w, old);
		from[0] = (struct urxe_seg){ .ptr = (char *)&old, .len = 8 };
		return place_bytes(qp, w, 0, from, 8);
	}
	if (w->opcode != IBV_WR_RDMA_READ || !a->head.length)
		return true;
	return place_bytes(qp, w, off, from, a->head.length);
}

/* Has it as many bytes as the packet of that answer has? */
static bool answer_fits(const struct urxe_qp *qp, const struct urxe_wqe *w,
			uint32_t i, const struct inbox_answer *a)
{
	uint64_t off = (uint64_t)i << qp->mtu_shift, left, mtu;

	if (WQE_ATOMIC_OPS & WQE_BIT(w->opcode))
		return a->head.opcode == WIRE_ATOMIC_ACKNOWLEDGE;
	if (a->head.opcode == WIRE_ATOMIC_ACKNOWLEDGE)
		return false;
	if (w->opcode != IBV_WR_RDMA_READ)
		return !a->head.length;
	mtu = 1ull << qp->mtu_shift;
	left = w->length - off;
	return a->head.length == (left < mtu ? left : mtu);
}

/* Data: of the oldest fetch, and the next packet of it. */
static void take_data(struct urxe_qp *qp, struct wire_requester *r,
		      const struct inbox_answer *a)
{
	const struct fetch f = r->fetch[r->first];
	uint32_t psn = a->head.psn, i;
	const struct urxe_wqe *w;

	if (!window_has(&r->window, psn))
		return; /* a duplicate */
	if (!r->fetches || !retire_up_to(qp, r, psn) || !qp->flying ||
	    psn != r->window.una) {
		missing(qp, r);
		return;
	}
	if (wire_psn_before(psn, f.psn) ||
	    !wire_psn_before(psn, wire_psn_add(f.psn, f.packets)))
		return; /* of a request that takes no data */
	w = sq_slot(&qp->sq, qp->sq.done);
	i = (psn - message_at(r, qp->sq.done)->psn) & WIRE_PSN_MASK;
	if (!message_fetches(w) || !answer_fits(qp, w, i, a))
		return;
	if (place_answer(qp, w, i, a))
		retire(qp, r, wire_psn_add(psn, 1));
	else
		requester_ends(qp, IBV_WC_LOC_PROT_ERR);
}

static void take_ack(struct urxe_qp *qp, struct wire_requester *r, uint32_t psn)
{
	if (window_has(&r->window, psn) &&
	    !retire_up_to(qp, r, wire_psn_add(psn, 1)))
		missing(qp, r);
}

static void take_rnr(struct urxe_qp *qp, struct wire_requester *r, uint8_t code)
{
	counted(qp, URXE_CNT_RNR_NAK);
	why_note(WIRE_RNR, qp->attr.dest_qp_num);
	if (!r->rnr_left && qp->attr.rnr_retry != RNR_ENDLESS) {
		counted(qp, URXE_CNT_RNR_EXC);
		requester_ends(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	r->rnr_left--;
	go_back(qp, r, false);
	r->rnr_until = clock_now() + retry_rnr_ns(code);
	wait_shown(qp, r, STALL_RNR, r->rnr_until);
}

/* A NAK of that PSN, of which all before is answered. */
static void take_nak(struct urxe_qp *qp, struct wire_requester *r,
		     const struct inbox_answer *a)
{
	static const uint8_t status[] = { IBV_WC_REM_INV_REQ_ERR,
					  IBV_WC_REM_ACCESS_ERR,
					  IBV_WC_REM_OP_ERR };
	uint8_t syndrome = a->head.syndrome;
	uint32_t psn = a->head.psn;

	/* the PSN that is waited for may be one that went back */
	if (!window_has(&r->window, psn))
		return;
	if (!retire_up_to(qp, r, psn)) {
		missing(qp, r);
		return;
	}
	if (!qp->flying)
		return;
	if ((syndrome & 0xe0) == WIRE_RNR_NAK) {
		take_rnr(qp, r, syndrome & 0x1f);
	} else if (syndrome == WIRE_NAK_SEQUENCE) {
		counted(qp, URXE_CNT_SEQ_NAK);
		if (r->gone_back)
			return;
		r->gone_back = true;
		try_again(qp, r);
	} else if (syndrome >= WIRE_NAK_INVALID &&
		   syndrome <= WIRE_NAK_OPERATION) {
		why_note(WIRE_NAK, qp->attr.dest_qp_num, psn, syndrome);
		counted(qp, URXE_CNT_REM_ERR);
		requester_ends(qp, status[syndrome - WIRE_NAK_INVALID]);
	}
}

static void take_answer(struct urxe_qp *qp, struct wire_requester *r,
			const struct inbox_answer *a)
{
	bool acks = (a->head.syndrome & 0xe0) == 0;

	if (a->head.qpn != qp->qpn || !qp->flying)
		return;
	switch (a->head.opcode) {
	case WIRE_ACKNOWLEDGE:
		if (acks)
			take_ack(qp, r, a->head.psn);
		else
			take_nak(qp, r, a);
		break;
	case WIRE_READ_FIRST:
	case WIRE_READ_MIDDLE:
	case WIRE_READ_LAST:
	case WIRE_READ_ONLY:
	case WIRE_ATOMIC_ACKNOWLEDGE:
		take_data(qp, r, a);
		break;
	case WIRE_CNP_OPCODE:
		counted(qp, URXE_CNT_CNP_HANDLED);
		window_go_slow(&r->window);
		break;
	}
}

/* ------------------------------------------------------- the carrier */

/* In the child of a fork what was in flight is the parent's. */
static void requester_disown(struct urxe_qp *qp, struct wire_requester *r)
{
	if (r->pid == urxe_pid)
		return;
	flight_disown(qp);
	r->pid = urxe_pid;
}

/* Somebody looks, and will again: he need not be woken. */
static void requester_looks(struct urxe_qp *qp, struct wire_requester *r,
			    uint64_t now)
{
	uint64_t last = load_relaxed(&r->inbox->looked);

	if (service_is_me())
		return;
	store_relaxed(&r->inbox->looked, now);
	if (now - last > URXE_WIRE_RECENT)
		service_need(qp->ctx); /* to see when that is over */
}

static enum verdict requester_no_inbox(struct run *r)
{
	why_note(WIRE_MEMORY, URXE_WIRE_INBOX_BYTES);
	r->status = IBV_WC_LOC_QP_OP_ERR;
	return WR_FAILED;
}

/* For those who look on. */
static void requester_show(const struct urxe_qp *qp,
			   const struct wire_requester *r)
{
	struct urxe_wire_shown *s = &r->inbox->shown;

	store_relaxed(&s->una, r->window.una);
	store_relaxed(&s->next, r->window.next);
	store_relaxed(&s->end, r->window.end);
	store_relaxed(&s->window, r->window.size);
	store_relaxed(&s->again, r->again);
	store_relaxed(&s->left, qp->attr.timeout ? r->left : URXE_WIRE_ENDLESS);
	store_relaxed(&s->until, r->deadline);
}

/* Nothing is in flight before it. */
static void requester_start(struct urxe_qp *qp, struct wire_requester *r)
{
	inbox_clear(r->inbox);
	window_begin(&r->window, qp->psn);
	r->at = qp->sq.begun;
	fetch_forget(r);
	r->deadline = r->rnr_until = 0;
	r->failed = IBV_WC_SUCCESS;
	tries_begin(qp, r);
}

/* Unreliable: nobody answers. */
static enum verdict begin_unreliable(struct urxe_qp *qp,
				     struct wire_requester *r)
{
	if (is_send(sq_slot(&qp->sq, r->at)))
		counted(qp, URXE_CNT_SENDS);
	while (may_send(qp, r)) {
		requester_send(qp, r);
		window_answered(&r->window, r->window.next);
	}
	why_settled();
	return WR_DONE;
}

static enum verdict requester_begin(struct urxe_qp *qp, struct run *run,
				    struct urxe_wqe *w)
{
	struct wire_requester *r = qp->wire;
	enum verdict v;

	requester_disown(qp, r);
	if (qp->sq.done == qp->sq.begun)
		requester_start(qp, r);
	message_begin(r, qp->sq.begun, 0);
	if (wqe_is_local(w))
		return execute(qp, run, w);
	v = execute_lost(qp, run, w);
	if (v != WR_DROPPED)
		return v;
	if (qp->type != IBV_QPT_UC && inbox_open(qp->ctx, r->inbox))
		return requester_no_inbox(run);
	message_begin(r, qp->sq.begun, message_packets(qp, w));
	if (qp->type == IBV_QPT_UC)
		return begin_unreliable(qp, r);
	requester_looks(qp, r, clock_now());
	requester_send(qp, r);
	requester_show(qp, r);
	return WR_IN_FLIGHT;
}

static bool requester_follows(const struct urxe_qp *qp,
			      const struct urxe_wqe *first,
			      const struct urxe_wqe *second)
{
	const struct wire_window *w = &qp->wire->window;
	uint32_t out = (w->end - w->una) & WIRE_PSN_MASK;

	if (wqe_is_local(second) ||
	    out + message_packets(qp, second) > PSNS_MOST)
		return false;
	/* on the wire all is in order, but what fetches is done later */
	return !(second->flags & IBV_SEND_FENCE && message_fetches(first));
}

static void take_answers(struct urxe_qp *qp, struct wire_requester *r)
{
	struct inbox_answer a;

	while (inbox_look(qp->ctx, r->inbox, &a)) {
		take_answer(qp, r, &a);
		inbox_drop(r->inbox, &a);
	}
}

static void look_at_clock(struct urxe_qp *qp, struct wire_requester *r,
			  uint64_t now)
{
	if (r->failed) {
		/* it ends when those before it are answered */
		if (!sq_slot(&qp->sq, r->failed_at)->answer)
			flight_answer(qp, r->failed_at, r->failed);
	}
	if (r->rnr_until && now >= r->rnr_until)
		r->rnr_until = 0;
	if (qp->flying && r->deadline && now >= r->deadline) {
		counted(qp, URXE_CNT_ACK_TIMEOUT);
		r->gone_back = false;
		try_again(qp, r);
	}
}

static uint64_t requester_next(const struct wire_requester *r, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (now - load_relaxed(&r->inbox->looked) <= 2 * URXE_WIRE_RECENT)
		next = now + 2 * URXE_WIRE_RECENT;
	if (r->deadline && r->deadline < next)
		next = r->deadline;
	if (r->rnr_until && r->rnr_until < next)
		next = r->rnr_until;
	return next;
}

static uint64_t requester_progress(struct urxe_qp *qp, uint64_t now)
{
	struct wire_requester *r = qp->wire;

	requester_disown(qp, r);
	if (!qp->flying)
		return UINT64_MAX;
	requester_looks(qp, r, now);
	take_answers(qp, r);
	if (qp->flying)
		look_at_clock(qp, r, now);
	skip_sent(r);
	if (qp->flying && may_send(qp, r)) {
		qp_guard_raise(qp, GUARD_NOTHING);
		requester_send(qp, r);
		guard_lower(qp->guard);
	}
	requester_show(qp, r);
	if (qp->stall.kind == STALL_NONE)
		requester_run(qp);
	return qp->flying ? requester_next(r, now) : UINT64_MAX;
}

static void requester_cancel(struct urxe_qp *qp)
{
	struct wire_requester *r = qp->wire;

	fetch_forget(r);
	r->at = r->end = qp->sq.done;
	r->deadline = r->rnr_until = 0;
	r->failed = IBV_WC_SUCCESS;
	r->waits = false;
	window_begin(&r->window, qp->psn);
}

static const struct urxe_carrier carrier = {
	.begin = requester_begin,
	.follows = requester_follows,
	.progress = requester_progress,
	.cancel = requester_cancel,
};

/* ------------------------------------------------------- its life */

struct wire_requester *requester_new(const struct urxe_qp *qp)
{
	size_t slots = (size_t)qp->sq.mask + 1;
	struct wire_requester *r;

	r = calloc(1, sizeof(*r) + slots * sizeof(r->message[0]));
	if (!r)
		return NULL;
	r->mask = qp->sq.mask;
	r->pid = urxe_pid;
	r->inbox = &qp->ctx->arena->wire[qpn_index(qp->qpn)].inbox;
	return r;
}

void requester_free(struct wire_requester *r)
{
	free(r);
}

void requester_attach(struct urxe_qp *qp, struct wire_requester *r)
{
	r->before = qp->carrier;
	/* there may be a QP of the same number in this fabric */
	conn_drop(&qp->conn);
	qp->wire = r;
	qp->carrier = &carrier;
}

struct wire_requester *requester_detach(struct urxe_qp *qp)
{
	struct wire_requester *r = qp->wire;

	if (!r)
		return NULL;
	qp->carrier = r->before;
	qp->wire = NULL;
	return r;
}
