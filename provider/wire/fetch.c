// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
/*
 * RDMA READs and atomics, which are answered with what they ask for.  A READ
 * that comes again is read again (IB 9.7.5.1.3: by its own RETH, whose key is
 * looked up anew); an atomic is not done again but answered from the list in
 * shared memory.
 */
#include <string.h>

#include "engine/atomics.h"
#include "engine/comp_cntr.h"
#include "engine/why.h"
#include "server.h"

bool fetch_has_resources(const struct request *r)
{
	uint32_t limit = load_relaxed(&r->c->sh->max_dest_rd_atomic);

	if (likely(limit))
		return true;
	why_note(RESOURCES, 1, r->c->qpn, limit);
	return false;
}

/* ------------------------------------------------------- RDMA READ */

/* What is still to be answered. */
struct read {
	struct urxe_seg src;
	uint64_t left;
	uint32_t psn;
	bool begun;
};

static uint32_t read_packets(const struct request *r)
{
	const uint32_t n = (r->p->reth.length + r->mtu - 1) / r->mtu;

	return n ? n : 1;
}

static uint8_t read_op(const struct read *d, uint64_t n)
{
	if (!d->begun)
		return n == d->left ? WIRE_READ_ONLY : WIRE_READ_FIRST;
	return n == d->left ? WIRE_READ_LAST : WIRE_READ_MIDDLE;
}

/* One packet more, whose payload is to be written to *to. */
static void read_add(struct request *r, struct read *d, struct urxe_seg *to)
{
	const uint64_t n = d->left < r->mtu ? d->left : r->mtu;
	struct wire_packet p;

	reply_begin(r, read_op(d, n), d->psn, &p);
	p.length = (uint32_t)n;
	to->ptr = (char *)reply_add(r, &p);
	to->len = n;
	d->psn = wire_psn_add(d->psn, 1);
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

/* As many packets as go out together. */
static enum response read_some(struct request *r, struct read *d)
{
	struct urxe_seg to[WIRE_SENDER_PACKETS];
	const uint64_t before = d->left;
	enum response resp = RESP_ACK;
	unsigned int n = 0;

	do
		read_add(r, d, &to[n++]);
	while (d->left && n < WIRE_SENDER_PACKETS);
	if (before != d->left)
		resp = moved(transfer(to, &d->src, before - d->left,
				      r->s->me.ctx, false));
	if (resp) {
		while (n--)
			wire_sender_drop(&r->s->sender);
		return resp;
	}
	seg_advance(&d->src, before - d->left);
	reply_flush(r->s);
	return RESP_ACK;
}

static void read_count(struct request *r, bool failed)
{
	const struct urxe_wqe w = { .opcode = IBV_WR_RDMA_READ,
				    .length = r->p->reth.length };

	comp_cntr_remote(r->c, &w, failed);
}

/*
 * That it may be read was seen; a key that is taken away in the middle is a NAK
 * in the middle.
 */
static enum response read_answer(struct request *r, struct read *d)
{
	enum response resp;

	r->v->due = false; /* it is an ACK of what was before, too */
	reply_flush(r->s); /* what is in front of it in the sender goes first */
	/* after the WRITEs before it, and before the READs after it */
	atomic_thread_fence(memory_order_seq_cst);
	do
		resp = read_some(r, d);
	while (!resp && d->left);
	atomic_thread_fence(memory_order_acquire);
	return resp;
}

static enum response read_access(struct request *r, struct read *d)
{
	const struct wire_reth *reth = &r->p->reth;

	d->left = reth->length;
	d->psn = r->p->bth.psn;
	d->begun = false;
	if (reth->length > URXE_MAX_MSG || !fetch_has_resources(r))
		return RESP_NAK_INVALID;
	return responder_access(r->c, reth->rkey, reth->addr, reth->length,
				IBV_ACCESS_REMOTE_READ, &d->src, NULL);
}

enum response fetch_read(struct request *r)
{
	enum response resp;
	struct read d;

	resp = read_access(r, &d);
	if (resp) {
		read_count(r, true);
		return resp;
	}
	/* first: if this process dies, it is asked for again */
	respond_accept(r, read_packets(r), URXE_WIRE_NOTHING);
	resp = read_answer(r, &d);
	read_count(r, resp != RESP_ACK);
	return resp;
}

void fetch_read_again(struct request *r)
{
	const uint32_t epsn = load_relaxed(&r->c->sh->epsn) & WIRE_PSN_MASK;
	const uint32_t end = wire_psn_add(r->p->bth.psn, read_packets(r));
	struct read d;

	/* of what was asked for then, and no more */
	if (r->p->reth.length > URXE_MAX_MSG || wire_psn_minus(end, epsn) > 0)
		return;
	if (!shared_turn_again(r) && !read_access(r, &d))
		read_answer(r, &d);
}

/* ------------------------------------------------------- atomics */

static void atomic_answer(struct request *r, uint32_t psn, uint32_t msn,
			  uint64_t original)
{
	struct wire_packet p;

	r->v->due = false;
	reply_begin(r, WIRE_ATOMIC_ACKNOWLEDGE, psn, &p);
	p.aeth.msn = msn & WIRE_PSN_MASK;
	p.atomicack.original = original;
	reply_add(r, &p);
}

static void atomic_wqe(const struct request *r, struct urxe_wqe *w)
{
	const struct wire_atomiceth *a = &r->p->atomiceth;

	memset(w, 0, sizeof(*w));
	w->length = 8;
	w->rkey = a->rkey;
	w->remote_addr = a->addr;
	if (r->op == WIRE_FETCH_ADD) {
		w->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		w->atomic.compare_add = a->swap_add;
	} else {
		w->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		w->atomic.compare_add = a->compare;
		w->atomic.swap = a->swap_add;
	}
}

void fetch_keep(struct request *r, uint64_t original)
{
	struct urxe_wire_responder *st = r->st;
	struct urxe_wire_atomic *a =
		&st->atomic[st->atomics++ % URXE_WIRE_ATOMICS];

	a->original = original;
	a->msn = wire_psn_add(st->msn, 1);
	a->psn = r->p->bth.psn | URXE_WIRE_DONE;
}

enum response fetch_atomic(struct request *r)
{
	const struct urxe_key *key;
	struct urxe_seg word;
	enum response resp;
	struct urxe_wqe w;
	uint64_t original;

	atomic_wqe(r, &w);
	if (!fetch_has_resources(r) || !responder_is_aligned(w.remote_addr))
		return RESP_NAK_INVALID;
	resp = responder_access(r->c, w.rkey, w.remote_addr, 8,
				IBV_ACCESS_REMOTE_ATOMIC, &word, &key);
	if (resp)
		return resp;
	if (!responder_is_aligned(word.va))
		return RESP_NAK_INVALID;
	respond_step(r);
	resp = atomics_execute(&r->s->me, r->c, &word, key, &w, &original);
	if (resp) {
		respond_step_undone(r);
		return resp;
	}
	fetch_keep(r, original);
	respond_accept(r, 1, URXE_WIRE_NOTHING);
	atomic_answer(r, r->p->bth.psn, r->st->msn, original);
	return RESP_ACK;
}

const struct urxe_wire_atomic *fetch_kept(const struct request *r)
{
	const uint32_t psn = r->p->bth.psn | URXE_WIRE_DONE;
	uint32_t i;

	for (i = 0; i < URXE_WIRE_ATOMICS; i++)
		if (r->st->atomic[i].psn == psn)
			return &r->st->atomic[i];
	return NULL;
}

void fetch_atomic_again(struct request *r)
{
	const struct urxe_wire_atomic *a = fetch_kept(r);

	if (a)
		atomic_answer(r, r->p->bth.psn, a->msn, a->original);
}
