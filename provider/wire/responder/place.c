// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Responder side of FLUSH and ATOMIC WRITE (annex A19), each answered by an
 * RDMA READ response without data.  A duplicate FLUSH is executed again.  A
 * duplicate ATOMIC WRITE is not, because another write may have followed.
 */
#define _GNU_SOURCE
#include <string.h>

#include "shared/opcode.h"
#include "engine/qp/wqe.h"
#include "server.h"

static void place_answer(struct request *r)
{
	struct wire_packet p;

	reply_covers_ack(r, r->p->bth.psn);
	reply_begin(r, WIRE_READ_ONLY, r->p->bth.psn, &p);
	reply_add(r, &p);
}

/* ------------------------------------------------------- FLUSH */

static enum response flush(struct request *r)
{
	const struct urxe_wqe w = {
		.opcode = URXE_WR_FLUSH,
		.length = r->p->reth.length,
		.rkey = r->p->reth.rkey,
		.remote_addr = r->p->reth.addr,
		.flush = { .type = r->p->feth.type, .level = r->p->feth.level },
	};

	if (!wqe_flush_is_defined(&w) || !fetch_has_resources(r))
		return RESP_NAK_INVALID;
	return responder_flush(&r->s->me, r->c, &w);
}

/* ------------------------------------------------------- ATOMIC WRITE */

static enum response atomic_write(struct request *r)
{
	const struct wire_reth *reth = &r->p->reth;
	uint64_t value;
	const struct urxe_seg src = { .ptr = (char *)&value,
				      .len = sizeof(value) };
	struct urxe_seg dst;
	enum response resp;

	if (reth->length != sizeof(value) || !fetch_has_resources(r) ||
	    !responder_is_aligned(reth->addr))
		return RESP_NAK_INVALID;
	resp = responder_access(r->c, reth->rkey, reth->addr, sizeof(value),
				IBV_ACCESS_REMOTE_WRITE, &dst, NULL);
	if (resp)
		return resp;
	if (!responder_is_aligned(dst.va))
		return RESP_NAK_INVALID;
	memcpy(&value, r->p->payload, sizeof(value));
	resp = moved(transfer(&dst, &src, sizeof(value), r->s->me.ctx, false));
	if (!resp)
		fetch_keep(r, 0);
	return resp;
}

/* ------------------------------------------------------- both */

enum response place(struct request *r)
{
	enum response resp = r->op == WIRE_FLUSH ? flush(r) : atomic_write(r);

	if (resp)
		return resp;
	respond_accept(r, 1, URXE_WIRE_NOTHING);
	place_answer(r);
	return RESP_ACK;
}

void place_duplicate(struct request *r)
{
	if (r->op == WIRE_FLUSH ? !shared_use_srq_duplicate(r) && !flush(r) :
				  fetch_kept(r) != NULL)
		place_answer(r);
}
