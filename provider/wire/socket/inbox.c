// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Inbox of a QP: single-producer single-consumer ring, see inbox.h. */
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "engine/run/service.h"
#include "count.h"
#include "inbox.h"

#define HEAD_BYTES ((uint32_t)sizeof(struct urxe_wire_answer))
static_assert(sizeof(struct urxe_wire_answer) <= URXE_INBOX_ALIGN,
	      "an empty record has one unit");

/* A ring, as one process has it mapped. */
struct ring {
	char *at; /* NULL: there is none */
	uint32_t bytes; /* a power of two */
};

static uint32_t record_bytes(uint32_t length)
{
	return (HEAD_BYTES + length + URXE_INBOX_ALIGN - 1) &
	       ~(URXE_INBOX_ALIGN - 1);
}

/* The word is from shared memory.  0: there is no ring, or it is damaged. */
static uint32_t ring_bytes(uint64_t word)
{
	const uint32_t log = URXE_INBOX_LOG(word);

	return log >= URXE_INBOX_SMALL_LOG && log <= URXE_INBOX_LARGE_LOG ?
		       1u << log :
		       0;
}

uint32_t inbox_bytes(const struct urxe_wire_inbox *in)
{
	return ring_bytes(load_relaxed(&in->ring));
}

static struct ring ring_of(struct urxe_arena *a, uint64_t word)
{
	struct ring r = { .bytes = ring_bytes(word) };

	if (r.bytes)
		r.at = arena_ptr(a, URXE_INBOX_OFFSET(word), r.bytes);
	return r;
}

static struct ring inbox_ring(struct urxe_arena *a, struct urxe_wire_inbox *in)
{
	return ring_of(a, load_acquire(&in->ring));
}

/* Return the address of a position. */
static char *ring_at(const struct ring *r, uint32_t pos)
{
	return r->at + (pos & (r->bytes - 1));
}

/* Return how many of n bytes from pos on are before the ring's end. */
static uint32_t before_end(const struct ring *r, uint32_t pos, uint32_t n)
{
	uint32_t left = r->bytes - (pos & (r->bytes - 1));

	return n < left ? n : left;
}

/* ------------------------------------------------------- putting */

static void ring_write(const struct ring *r, uint32_t pos, const void *from,
		       uint32_t n)
{
	uint32_t first = before_end(r, pos, n);

	memcpy(ring_at(r, pos), from, first);
	if (n > first)
		memcpy(r->at, (const char *)from + first, n - first);
}

/* Append a record.  Returns false if the QP has sent no request. */
static bool inbox_write(struct urxe_fabric *f, struct urxe_arena *a,
			struct urxe_wire_inbox *in,
			struct urxe_wire_answer *head, const void *payload)
{
	const uint32_t bytes = record_bytes(head->length);
	uint32_t tail = load_relaxed(&in->tail);
	uint32_t used = tail - load_acquire(&in->head);
	const struct ring r = inbox_ring(a, in);

	if (!r.at)
		return false;
	if (used > r.bytes || bytes > r.bytes - used) {
		fetch_add_relaxed(&in->lost, 1);
		count_answer(f, URXE_CNT_INBOX_LOST);
		return true;
	}
	if (used)
		count_answer(f, URXE_CNT_ACK_DEFERRED);
	head->at = URXE_INBOX_AT(tail);
	ring_write(&r, tail, head, HEAD_BYTES);
	if (head->length)
		ring_write(&r, tail + HEAD_BYTES, payload, head->length);
	store_release(&in->tail, tail + bytes);
	return true;
}

bool inbox_accepts(const struct urxe_qp_sh *sh, uint32_t qpn,
		   const struct wire_path *path)
{
	return URXE_CONN_QPN(load_acquire(&sh->conn)) == qpn &&
	       load_relaxed(&sh->roce) == URXE_ROCE_V2 &&
	       shared_gid_is(&sh->dgid, path->sgid) &&
	       shared_gid_is(&sh->sgid, path->dgid);
}

bool inbox_answer_head(const struct wire_packet *p,
		       struct urxe_wire_answer *head)
{
	*head = (struct urxe_wire_answer){
		.qpn = p->bth.qpn,
		.psn = p->bth.psn,
		.original = p->atomicack.original,
		.length = (uint16_t)p->length,
		.opcode = p->bth.opcode == WIRE_CNP_OPCODE ?
				  p->bth.opcode :
				  (uint8_t)(p->bth.opcode & ~WIRE_TRANSPORT),
		.syndrome = p->aeth.syndrome,
		.msn = p->aeth.msn,
	};
	return p->length <= WIRE_MAX_PAYLOAD && p->known >= p->length;
}

bool inbox_put(struct owner_slot *owner_slot, struct urxe_peer *p, uint32_t qpn,
	       const struct wire_packet *packet, const struct wire_path *path)
{
	struct urxe_wire_qp *e = wire_entry(p->arena, qpn);
	struct urxe_wire_answer head;

	if (!inbox_answer_head(packet, &head) || !e ||
	    !inbox_accepts(&p->arena->qp[qpn_index(qpn)], qpn, path) ||
	    !inbox_write(owner_slot->f, p->arena, &e->inbox, &head,
			 packet->payload))
		return false;
	owner_slot_exit(owner_slot);
	/* pairs with the fence in requester_note_poll() */
	atomic_thread_fence(memory_order_seq_cst);
	if (clock_now() - load_relaxed(&e->inbox.last_poll) > URXE_WIRE_RECENT)
		service_wake(p->arena);
	return true;
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
	uint32_t turns = 0;
	uint64_t end;

	if (inbox_is_empty(in))
		return;
	service_wake(p->arena);
	end = clock_now() + INBOX_WAIT_NS;
	while (!inbox_is_empty(in) && clock_now() < end)
		thread_give_way(++turns);
}

/* ------------------------------------------------------- taking */

/* Return the word of a new ring, or 0. */
static uint64_t ring_new(struct urxe_context *ctx, uint32_t log)
{
	const uint64_t at = arena_alloc(ctx->arena, ctx->cmd_fd, 1ull << log);

	return at ? URXE_INBOX_RING(at, log) : 0;
}

int inbox_open(struct urxe_context *ctx, struct urxe_wire_inbox *in)
{
	uint64_t word;

	if (load_relaxed(&in->ring))
		return 0;
	word = ring_new(ctx, URXE_INBOX_SMALL_LOG);
	if (!word)
		return -ENOMEM;
	store_release(&in->ring, word);
	return 0;
}

/* Return the word of a new ring for READ responses, or 0. */
static uint64_t ring_new_for_read(struct urxe_context *ctx)
{
	uint64_t word = 0;
	uint32_t n;

	if (load_relaxed(&ctx->read_inboxes) >= URXE_INBOX_READ_MAX)
		return 0;
	n = fetch_add_relaxed(&ctx->read_inboxes, 1);
	if (n < URXE_INBOX_LARGE_MAX)
		word = ring_new(ctx, URXE_INBOX_LARGE_LOG);
	if (!word && n < URXE_INBOX_READ_MAX)
		word = ring_new(ctx, URXE_INBOX_READ_LOG);
	if (!word)
		fetch_sub_relaxed(&ctx->read_inboxes, 1);
	return word;
}

/* Copy the records from @head to @tail, fewer bytes than either ring has. */
static void ring_copy(const struct ring *to, const struct ring *from,
		      uint32_t head, uint32_t tail)
{
	uint32_t n;

	for (; head != tail; head += n) {
		n = before_end(from, head, tail - head);
		n = before_end(to, head, n);
		memcpy(ring_at(to, head), ring_at(from, head), n);
	}
}

int inbox_open_for_read(struct urxe_context *ctx, struct urxe_wire_inbox *in)
{
	const uint64_t old = load_relaxed(&in->ring);
	const uint32_t head = load_relaxed(&in->head);
	const uint32_t tail = load_acquire(&in->tail);
	struct ring from, to;
	uint64_t word;

	if (inbox_bytes(in) > 1u << URXE_INBOX_SMALL_LOG)
		return 0;
	word = ring_new_for_read(ctx);
	if (!word)
		return inbox_open(ctx, in);
	from = ring_of(ctx->arena, old);
	to = ring_of(ctx->arena, word);
	memset(to.at, 0, to.bytes);
	if (from.at && tail - head <= from.bytes)
		ring_copy(&to, &from, head, tail);
	store_relaxed(&in->first, old);
	store_release(&in->ring, word);
	return 0;
}

void inbox_clear(struct urxe_wire_inbox *in)
{
	store_release(&in->head, load_acquire(&in->tail));
}

static void ring_read(const struct ring *r, uint32_t pos, void *to, uint32_t n)
{
	uint32_t first = before_end(r, pos, n);

	memcpy(to, ring_at(r, pos), first);
	if (n > first)
		memcpy((char *)to + first, r->at, n - first);
}

/* Read the head of the record at a position.  Return whether it is there. */
static bool ring_has(const struct ring *r, uint32_t pos,
		     struct urxe_wire_answer *head)
{
	if (!r->at)
		return false;
	ring_read(r, pos, head, HEAD_BYTES);
	return head->at == URXE_INBOX_AT(pos);
}

/*
 * The record at a position is not in the ring: set *r to the ring before, if
 * it is there.
 */
static void __attribute__((cold))
ring_find(struct urxe_context *ctx, const struct urxe_wire_inbox *in,
	  uint32_t pos, struct ring *r, struct urxe_wire_answer *head)
{
	const struct ring first = ring_of(ctx->arena, load_relaxed(&in->first));

	if (ring_has(&first, pos, head))
		*r = first;
	else
		memset(head, 0, sizeof(*head));
}

bool inbox_peek(struct urxe_context *ctx, struct urxe_wire_inbox *in,
		struct inbox_answer *a)
{
	const uint32_t head = load_relaxed(&in->head);
	const uint32_t used = load_acquire(&in->tail) - head;
	struct ring r;

	if (!used)
		return false;
	r = inbox_ring(ctx->arena, in);
	if (!r.at || used > r.bytes || used < HEAD_BYTES)
		goto damaged;
	if (unlikely(!ring_has(&r, head, &a->head)))
		ring_find(ctx, in, head, &r, &a->head);
	if (a->head.length > WIRE_MAX_PAYLOAD ||
	    record_bytes(a->head.length) > used)
		goto damaged;
	a->piece[0] = ring_at(&r, head + HEAD_BYTES);
	a->bytes[0] = before_end(&r, head + HEAD_BYTES, a->head.length);
	a->piece[1] = r.at;
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
