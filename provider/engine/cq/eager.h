/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Eager buffers.  A SEND into private memory of another process would need a
 * system call to copy the data.  If it is short, the requester stores it where
 * the receiver finds it, and the poller copies it to the receive buffer: up to
 * URXE_CQE_INLINE bytes in the CQE itself, up to URXE_EAGER_BYTES in a slot of
 * the eager buffer of the receive CQ.
 *
 * The slots need no state of their own.  Position p of the ring has slot
 * p % URXE_EAGER_SLOTS, and the producer that has claimed p may use the slot
 * if the poller is past p - URXE_EAGER_SLOTS.  The poller reads the slot
 * before it stores head (release); the producer loads head (acquire) before it
 * writes.  A slot of a dead producer is skipped with its CQE.
 *
 *	eager	eager_base
 *	0	0		no buffer: producers set eager_wanted, and the
 *				next poll allocates it
 *	offset	offset		producers may use it
 *	0	offset		suspended: while the ring is replaced, whose
 *				successor counts positions anew, or before the
 *				buffer is freed because it was not used lately
 *
 * A producer loads ring, head and eager in this order (seq_cst), with its
 * guard raised until it has published.  The owner stores eager 0 (seq_cst)
 * before a new ring, and waits for the guards that name the CQ: after that no
 * producer uses the buffer, and none publishes another entry to the old ring.
 *
 * eager_wanted is set by producers, with the CQ's attention flag, which the
 * service thread does not clear.  It becomes EAGER_TRIED when the poller has
 * allocated the buffer or could not, and is cleared by the service thread while
 * there is no buffer.  So a failed allocation is repeated, but not each time.
 */
#pragma once

#include "cq.h"

/* Producers, with the guard raised ------------------------------------- */

/* Request a buffer, after eager_is_ready() was false because there is none. */
void eager_want(struct urxe_cq_view *v) __attribute__((cold));

/*
 * Will the next entry that is claimed have a slot?  Other producers may claim
 * a few entries meanwhile.
 */
static inline bool eager_is_ready(struct urxe_cq_view *v)
{
	const bool hint = URXE_CQ_HINT(load_relaxed(&v->sh->ring));
	const uint32_t tail = load_relaxed(&v->sh->tail_hint[hint]);

	if (unlikely(!load_relaxed(&v->sh->eager))) {
		eager_want(v);
		return false;
	}
	return likely(tail - load_relaxed(&v->sh->head_seen[hint]) <
		      URXE_EAGER_SLOTS / 2) ||
	       tail - load_relaxed(&v->sh->head[hint]) < URXE_EAGER_SLOTS / 2;
}

/* Is that the offset of a buffer?  It is read from shared memory. */
static inline bool eager_fits(uint64_t at)
{
	return likely(at - URXE_HEAP_OFFSET <= URXE_ARENA_SIZE -
						       URXE_HEAP_OFFSET -
						       URXE_EAGER_SIZE &&
		      !(at % URXE_LINE));
}

/* Return the slot of an entry that the caller has claimed; NULL: none. */
static inline char *eager_slot(const struct urxe_cq_view *v, uint32_t pos)
{
	const bool hint = URXE_CQ_HINT(load_seq_cst(&v->sh->ring));
	const uint32_t head = load_acquire(&v->sh->head[hint]);
	const uint64_t at = load_seq_cst(&v->sh->eager);

	if (unlikely(!eager_fits(at) || pos - head >= URXE_EAGER_SLOTS))
		return NULL;
	return (char *)v->peer->arena + at +
	       (uint64_t)(pos % URXE_EAGER_SLOTS) * URXE_EAGER_BYTES;
}

/* The owner, inside the gate -------------------------------------------- */

/* Return the slot of position pos; NULL: the CQ has no buffer. */
static inline const char *eager_read(struct urxe_cq *cq, uint32_t pos)
{
	/* acquire: another process of a fork may have allocated it */
	const uint64_t at = load_acquire(&cq->sh->eager_base);

	if (unlikely(!eager_fits(at)))
		return NULL;
	store_relaxed(&cq->eager_used, true);
	return (const char *)cq->ctx->arena + at +
	       (uint64_t)(pos % URXE_EAGER_SLOTS) * URXE_EAGER_BYTES;
}

/* Values of eager_wanted */
enum { EAGER_NOT_WANTED, EAGER_WANTED, EAGER_TRIED };

static inline bool eager_is_wanted(const struct urxe_cq *cq)
{
	return load_relaxed(&cq->sh->eager_wanted) == EAGER_WANTED;
}

/* Allocate the buffer if it is wanted. */
void eager_provide_slow(struct urxe_cq *cq) __attribute__((cold));
static inline void eager_provide(struct urxe_cq *cq)
{
	if (unlikely(eager_is_wanted(cq)))
		eager_provide_slow(cq);
}

/* Keep producers from using the buffer while the ring is replaced. */
void eager_suspend(struct urxe_cq *cq);
void eager_resume(struct urxe_cq *cq);
/*
 * Free the buffers that were not used lately.  Takes the gates; ctx->lock is
 * held.
 */
void eager_return(struct urxe_context *ctx, uint64_t now);
/* Free the buffer of a CQ that is destroyed. */
void eager_free(struct urxe_cq *cq);
