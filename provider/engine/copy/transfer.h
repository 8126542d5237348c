/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Copying of message data.  There are four copy paths; mem_reach() (mem.h)
 * determines which one is used:
 *
 *  1. memory of this process: memcpy
 *  2. memory that both processes map (DM, shared files): memcpy
 *  3. private memory of another process: process_vm_readv/writev
 *  4. if the system forbids path 3: a bounce buffer, and a thread of that
 *     process that copies (bounce.h)
 *
 * Paths 1 and 2 copy with nofault.h: memory that the program has unmapped or
 * truncated is an error, and the last bytes of a message are stored last, with
 * release order.  A program that polls the end of a buffer then sees the whole
 * message, as with a NIC that writes in order.  An aligned word of 4 or 8
 * bytes is stored at once.
 *
 * All of a message is visible before any of the next message of the same QP:
 * each message begins with a release fence.  There is no fence inside one
 * process_vm_writev() call, so on CPUs with weakly ordered stores each
 * message has a call of its own (TRANSFER_IN_ORDER).
 *
 * Requesters call these functions while their guard is raised; pollers call
 * transfer() for inline data.
 */
#pragma once

#include <sys/uio.h>

#include "engine/core/context.h"
#include "engine/mem/mem.h"
#include "nofault.h"

enum transfer_status {
	TRANSFER_OK,
	TRANSFER_GONE, /* the other process died or does not respond */
	TRANSFER_FAULT, /* registered memory was unmapped or truncated */
	TRANSFER_REVOKED, /* the key was revoked after the look-up */
	TRANSFER_DENIED, /* path 3 is forbidden, and path 4 impossible */
	/* flag in a result that is not OK: the source could not be read */
	TRANSFER_READING = 8,
};

#define TRANSFER_IOVS 128

/* May one process_vm_writev() call contain several messages? */
#if defined(__x86_64__)
#define TRANSFER_IN_ORDER true
#else
#define TRANSFER_IN_ORDER false
#endif

/* A process_vm_* call being built, for one direction and one process. */
struct transfer_batch {
	struct iovec local[TRANSFER_IOVS], remote[TRANSFER_IOVS];
	const struct urxe_key *key[TRANSFER_IOVS]; /* keys of remote[] */
	unsigned int n;
	bool write;
	bool committed; /* it cannot be retried; see transfer() */
	bool local_failed; /* the last failure was a fault of local[] */
	int32_t pid;
	struct urxe_peer *peer;
	struct urxe_context *ctx; /* the caller's context */
	uint64_t bytes; /* sum of the iovecs */
};

static inline void transfer_begin(struct transfer_batch *b,
				  struct urxe_context *ctx, bool committed)
{
	b->n = 0;
	b->bytes = 0;
	b->ctx = ctx;
	b->committed = committed;
	b->local_failed = false;
}

/* Is seg in another process than the segments in the batch? */
static inline bool transfer_parts(const struct transfer_batch *b,
				  const struct urxe_seg *seg)
{
	return b->pid != seg->pid || b->peer != seg->peer ||
	       /* the same PID in two PID namespaces is two processes */
	       (b->key[0]->flags ^ seg->key->flags) & URXE_MR_FOREIGN;
}

/*
 * Add len bytes at va in the process of seg, and at local here.  The caller
 * has checked that the batch is not full and transfer_parts() is false.
 */
static inline void transfer_add(struct transfer_batch *b,
				const struct urxe_seg *seg, char *local,
				uint64_t va, uint64_t len)
{
	b->pid = seg->pid;
	b->peer = seg->peer;
	b->local[b->n].iov_base = local;
	b->local[b->n].iov_len = len;
	b->remote[b->n].iov_base = (void *)(uintptr_t)va;
	b->remote[b->n].iov_len = len;
	b->key[b->n] = seg->key;
	b->bytes += len;
	b->n++;
}

/* Remove the first n bytes from a list of iovecs. */
void iov_advance(struct iovec *iov, unsigned int count, uint64_t n);

/*
 * Execute the batch and empty it.  *moved (moved may be NULL) receives the
 * number of bytes that were copied, also on failure.  Preserves errno.
 */
enum transfer_status transfer_flush(struct transfer_batch *b, uint64_t *moved);

/* transfer_local() for a caller that knows nofault_is_safe(). */
static inline bool transfer_local_known(char *dst, const char *src,
					uint64_t len, bool safe)
{
	if (likely(safe) && len == 8 && !((uintptr_t)dst & 7))
		return likely(nofault_code_copy_word(dst, src));
	/* earlier messages are visible before this one */
	atomic_thread_fence(memory_order_release);
	if (unlikely(!safe))
		return !len || !nofault_copy_checked(dst, src, len).left;
	return !len || likely(!nofault_code_copy(dst, src, len).left);
}

/*
 * Copy bytes that are mapped in this process at both ends, the end last; src
 * and dst may overlap.  False: a part of them could not be accessed.  The
 * caller then repeats the copy with transfer(), which returns the reason.
 */
static inline bool transfer_local(char *dst, const char *src, uint64_t len)
{
	return transfer_local_known(dst, src, len, nofault_is_safe());
}

/*
 * Return whether the first len bytes of a list of segments can be read, of
 * those that are mapped in this process.  For requests that have an effect
 * before their copy.
 */
bool transfer_can_read(const struct urxe_seg *seg, uint64_t len);

/*
 * Determine whether process_vm_* may be used for the process that opened p,
 * and set p->bounce if not.  For callers that must know before they copy.
 */
void transfer_probe(struct urxe_peer *p);

/*
 * Copy len bytes from one list of segments to another, for context ctx.  Each
 * list has at least len bytes.
 *
 * After TRANSFER_GONE the caller may retry the copy from its beginning, if
 * the other process turns out to be alive.  A copy that cannot be retried is
 * committed: it waits longer for the other process (shared/bounce_slot.h).
 */
enum transfer_status transfer(const struct urxe_seg *dst,
			      const struct urxe_seg *src, uint64_t len,
			      struct urxe_context *ctx, bool committed);
