// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Inbox of a QP: single-producer single-consumer ring, see inbox.h. */
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "engine/run/service.h"
#include "count.h"
#include "inbox.h"

#define BYTES URXE_WIRE_INBOX_BYTES
#define HEAD_BYTES ((uint32_t)sizeof(struct urxe_wire_answer))
static_assert((BYTES & (BYTES - 1)) == 0, "positions are masked");
static_assert(sizeof(struct urxe_wire_answer) % 8 == 0, "records are aligned");

static uint32_t record_bytes(uint32_t length)
{
	return HEAD_BYTES + ((length + 7) & ~7u);
}

static char *inbox_ring(struct urxe_arena *a, struct urxe_wire_inbox *in)
{
	uint64_t at = load_acquire(&in->ring);

	return at ? arena_ptr(a, at, BYTES) : NULL;
}

/* Return how many of n bytes from pos on are before the ring's end. */
static uint32_t before_end(uint32_t pos, uint32_t n)
{
	uint32_t left = BYTES - (pos & (BYTES - 1));

	return n < left ? n : left;
}

/* ------------------------------------------------------- putting */

static void ring_write(char *ring, uint32_t pos, const void *from, uint32_t n)
{
	uint32_t first = before_end(pos, n);

	memcpy(ring + (pos & (BYTES - 1)), from, first);
	if (n > first)
		memcpy(ring, (const char *)from + first, n - first);
}

/* Append a record.  Returns false if the QP has sent no request. */
static bool inbox_write(struct urxe_fabric *f, struct urxe_arena *a,
			struct urxe_wire_inbox *in,
			const struct urxe_wire_answer *head,
			const void *payload)
{
	const uint32_t bytes = record_bytes(head->length);
	uint32_t tail = load_relaxed(&in->tail);
	uint32_t used = tail - load_acquire(&in->head);
	char *ring = inbox_ring(a, in);

	if (!ring)
		return false;
	if (used > BYTES || bytes > BYTES - used) {
		fetch_add_relaxed(&in->lost, 1);
		count_answer(f, URXE_CNT_INBOX_LOST);
		return true;
	}
	if (used)
		count_answer(f, URXE_CNT_ACK_DEFERRED);
	ring_write(ring, tail, head, HEAD_BYTES);
	if (head->length)
		ring_write(ring, tail + HEAD_BYTES, payload, head->length);
	store_release(&in->tail, tail + bytes);
	return true;
}

/*
 * Return true if the QP is connected with the host that the packet is from.
 */
static bool is_connected_to(const struct urxe_qp_sh *sh, uint32_t qpn,
			    const struct wire_path *path)
{
	return URXE_CONN_QPN(load_acquire(&sh->conn)) == qpn &&
	       load_relaxed(&sh->roce) == URXE_ROCE_V2 &&
	       shared_gid_is(&sh->dgid, path->sgid) &&
	       shared_gid_is(&sh->sgid, path->dgid);
}

static bool inbox_put_to(struct owner_slot *owner_slot, struct urxe_peer *p,
			 uint32_t qpn, const struct urxe_wire_answer *head,
			 const struct wire_packet *packet,
			 const struct wire_path *path)
{
	struct urxe_wire_qp *e = wire_entry(p->arena, qpn);

	if (!e || !is_connected_to(&p->arena->qp[qpn_index(qpn)], qpn, path) ||
	    !inbox_write(owner_slot->f, p->arena, &e->inbox, head,
			 packet->payload))
		return false;
	owner_slot_exit(owner_slot);
	/* pairs with the fence in requester_note_poll() */
	atomic_thread_fence(memory_order_seq_cst);
	if (clock_now() - load_relaxed(&e->inbox.last_poll) > URXE_WIRE_RECENT)
		service_wake(p->arena);
	return true;
}

bool inbox_put(struct owner_slot *owner_slot, uint32_t qpn,
	       const struct wire_packet *p, const struct wire_path *path)
{
	struct urxe_fabric *f = owner_slot->f;
	const struct urxe_wire_answer head = {
		.qpn = qpn,
		.psn = p->bth.psn,
		.original = p->atomicack.original,
		.length = (uint16_t)p->length,
		.opcode = p->bth.opcode == WIRE_CNP_OPCODE ?
				  p->bth.opcode :
				  (uint8_t)(p->bth.opcode & ~WIRE_TRANSPORT),
		.syndrome = p->aeth.syndrome,
		.msn = p->aeth.msn,
	};
	struct urxe_peer *peer;
	uint32_t slot, gen;
	bool done;

	if (p->length > WIRE_MAX_PAYLOAD || p->known < p->length ||
	    !qpn_lookup(f->dev, qpn, &slot, &gen))
		return false;
	peer = peer_get(f, slot, gen);
	if (!peer)
		return false;
	done = inbox_put_to(owner_slot, peer, qpn, &head, p, path);
	peer_put(peer);
	return done;
}

/* ------------------------------------------------------- waiting */

/* Longer than a busy machine needs to run the service thread. */
#define INBOX_WAIT_NS 20000000ull

/* acquire: pairs with inbox_drop(), after the completions were announced */
static bool inbox_is_empty(const struct urxe_wire_inbox *in)
{
	return load_acquire(&in->head) == load_relaxed(&in->tail);
}

void inbox_wait(struct urxe_peer *p, struct urxe_wire_inbox *in)
{
	uint64_t end;

	if (inbox_is_empty(in))
		return;
	service_wake(p->arena);
	end = clock_now() + INBOX_WAIT_NS;
	while (!inbox_is_empty(in) && clock_now() < end)
		sched_yield();
}

/* ------------------------------------------------------- taking */

int inbox_open(struct urxe_context *ctx, struct urxe_wire_inbox *in)
{
	uint64_t at;

	if (load_relaxed(&in->ring))
		return 0;
	at = arena_alloc(ctx->arena, ctx->cmd_fd, BYTES);
	if (!at)
		return -ENOMEM;
	store_release(&in->ring, at);
	return 0;
}

void inbox_clear(struct urxe_wire_inbox *in)
{
	store_release(&in->head, load_acquire(&in->tail));
}

static void ring_read(const char *ring, uint32_t pos, void *to, uint32_t n)
{
	uint32_t first = before_end(pos, n);

	memcpy(to, ring + (pos & (BYTES - 1)), first);
	if (n > first)
		memcpy((char *)to + first, ring, n - first);
}

bool inbox_peek(struct urxe_context *ctx, struct urxe_wire_inbox *in,
		struct inbox_answer *a)
{
	const uint32_t head = load_relaxed(&in->head);
	const uint32_t used = load_acquire(&in->tail) - head;
	const char *ring;

	if (!used)
		return false;
	ring = inbox_ring(ctx->arena, in);
	if (!ring || used > BYTES || used < HEAD_BYTES)
		goto damaged;
	ring_read(ring, head, &a->head, HEAD_BYTES);
	if (a->head.length > WIRE_MAX_PAYLOAD ||
	    record_bytes(a->head.length) > used)
		goto damaged;
	a->piece[0] = ring + ((head + HEAD_BYTES) & (BYTES - 1));
	a->bytes[0] = before_end(head + HEAD_BYTES, a->head.length);
	a->piece[1] = ring;
	a->bytes[1] = a->head.length - a->bytes[0];
	return true;

damaged:
	inbox_clear(in);
	return false;
}

void inbox_drop(struct urxe_wire_inbox *in, const struct inbox_answer *a)
{
	store_release(&in->head,
		      load_relaxed(&in->head) + record_bytes(a->head.length));
}
