// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Responder side of RDMA READ: requests and portions, see read.h. */
#define _GNU_SOURCE
#include "engine/qp/comp_cntr.h"
#include "read.h"
#include "server.h"

/* Portion of a READ, in full send batches (WIRE_SENDER_PACKETS). */
#define PORTION 4

static uint8_t read_op(const struct read *d, uint32_t n)
{
	if (!d->begun)
		return n == d->left ? WIRE_READ_ONLY : WIRE_READ_FIRST;
	return n == d->left ? WIRE_READ_LAST : WIRE_READ_MIDDLE;
}

/* Queue the next response packet; *to is the place of its payload. */
static void read_add(struct request *r, struct read *d, struct urxe_seg *to)
{
	const uint32_t n = d->left < r->mtu ? d->left : r->mtu;
	struct wire_packet p;

	reply_begin(r, read_op(d, n), d->psn, &p);
	p.length = n;
	to->ptr = (char *)reply_add(r, &p);
	to->len = n;
	d->psn = wire_psn_add(d->psn, 1);
	d->addr += n;
	d->left -= n;
	d->begun = true;
}

static void seg_advance(struct urxe_seg *seg, uint64_t n)
{
	if (seg->ptr)
		seg->ptr += n;
	seg->va += n;
	seg->len -= n;
}

/* Send one batch of response packets. */
static enum response read_some(struct request *r, struct read *d,
			       struct urxe_seg *src)
{
	struct urxe_seg to[WIRE_SENDER_PACKETS];
	const struct read before = *d;
	const uint32_t psn = d->psn;
	enum response resp = RESP_ACK;
	unsigned int n = 0;

	do
		read_add(r, d, &to[n++]);
	while (d->left && n < WIRE_SENDER_PACKETS);
	if (before.left != d->left)
		resp = moved(transfer(to, src, before.left - d->left,
				      r->s->me.ctx, false));
	if (resp) {
		while (n--)
			wire_sender_drop(&r->s->sender);
		d->psn = psn;
		return resp;
	}
	seg_advance(src, before.left - d->left);
	reply_flush(r->s);
	return RESP_ACK;
}

static void read_count(struct request *r, const struct read *d, bool failed)
{
	const struct urxe_wqe w = { .opcode = IBV_WR_RDMA_READ,
				    .length = d->length };

	comp_cntr_remote(r->c, &w, failed);
}

enum response read_access(struct request *r, const struct read *d,
			  struct urxe_seg *src)
{
	return responder_access(r->c, d->rkey, d->addr, d->left,
				IBV_ACCESS_REMOTE_READ, src, NULL);
}

/* If the key is deregistered between portions, the READ ends with a NAK. */
enum response read_portion(struct request *r, struct read *d)
{
	enum response resp;
	struct urxe_seg src;
	uint32_t i;

	resp = read_access(r, d, &src);
	reply_covers_ack(r, wire_psn_add(d->end, WIRE_PSN_MASK));
	reply_flush(r->s); /* flush the packets queued before it */
	/* order the reads after earlier WRITEs and before later READs */
	atomic_thread_fence(memory_order_seq_cst);
	for (i = 0; !resp && i < PORTION && !read_is_done(d); i++)
		resp = read_some(r, d, &src);
	atomic_thread_fence(memory_order_acquire);
	if (resp || read_is_done(d))
		read_count(r, d, resp != RESP_ACK);
	return resp;
}

/* ------------------------------------------------------- requests */

static uint32_t read_packets(const struct request *r, uint32_t length)
{
	const uint32_t n = (uint32_t)(((uint64_t)length + r->mtu - 1) / r->mtu);

	return n ? n : 1;
}

static bool read_of(const struct request *r, bool duplicate, struct read *d)
{
	const struct wire_reth *reth = &r->p->reth;
	const uint32_t psn = r->p->bth.psn;

	if (reth->length > URXE_MAX_MSG || !fetch_has_resources(r))
		return false;
	*d = (struct read){
		.addr = reth->addr,
		.left = reth->length,
		.length = reth->length,
		.rkey = reth->rkey,
		.srqn = r->p->xrceth.srqn,
		.first = psn,
		.psn = psn,
		.end = wire_psn_add(psn, read_packets(r, reth->length)),
		.duplicate = duplicate,
	};
	return true;
}

void read_refuse(struct request *r, const struct read *d, enum response resp)
{
	const struct wire_packet p = { .bth = { .psn = d->psn } };
	struct request there = *r;

	there.p = &p;
	respond_refuse(&there, resp);
}

/*
 * Send the first portion at once.  If no reader entry is free, the rest is
 * dropped and the requester asks for it again.
 */
static void read_now(struct request *r, struct read *d)
{
	enum response resp = read_portion(r, d);

	if (!resp && !read_is_done(d))
		reader_begin(r, d);
	else if (resp && !d->duplicate)
		read_refuse(r, d, resp);
}

enum response fetch_read(struct request *r)
{
	struct reader *q = reader_of(r->s, r->c->qpn);
	enum response resp = RESP_NAK_INVALID;
	struct urxe_seg src;
	struct read d = { .length = r->p->reth.length };

	if (read_of(r, false, &d))
		resp = read_access(r, &d, &src);
	if (q && (resp || !reader_put(q, &d))) {
		/* its NAK cannot be sent before the READs in progress */
		q->missed = true;
		return RESP_SILENCE;
	}
	if (resp) {
		read_count(r, &d, true);
		return resp;
	}
	/* before the response: if this process dies, it is repeated */
	respond_accept(r, (d.end - d.first) & WIRE_PSN_MASK, URXE_WIRE_NOTHING);
	if (q)
		r->v->due = false; /* its data implies the ACK */
	else
		read_now(r, &d);
	return RESP_ACK;
}

void fetch_read_duplicate(struct request *r)
{
	const uint32_t epsn = load_relaxed(&r->c->sh->epsn) & WIRE_PSN_MASK;
	struct reader *q = reader_of(r->s, r->c->qpn);
	struct urxe_seg src;
	struct read d;

	/* only what an executed request asked for */
	if (!read_of(r, true, &d) || wire_psn_minus(d.end, epsn) > 0 ||
	    shared_use_srq_duplicate(r) || read_access(r, &d, &src))
		return;
	if (q)
		reader_put(q, &d);
	else
		read_now(r, &d);
}
