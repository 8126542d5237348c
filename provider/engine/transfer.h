/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Moving bytes.  Four paths, chosen by what mem_reach could do:
 *
 *  1. same process: memcpy
 *  2. memory that both sides map (DM, shared files): memcpy
 *  3. private memory of another process: process_vm_readv/writev
 *  4. where the system forbids 3: a thread of that process copies, bounce.h
 *
 * Paths 1 and 2 store the last bytes last, with release order: a program that
 * watches the end of a message sees all of it, as on a NIC that writes in
 * order.  A word of 4 or 8 bytes is stored at once.
 *
 * Of two messages of a QP all of the first one is seen before any of the second,
 * so each begins with a release fence.  Within one call of process_vm_writev
 * there is none: where CPUs do not show stores in their order each message has a
 * call of its own.
 */
#pragma once

#include <string.h>
#include <sys/uio.h>

#include "context.h"
#include "mem.h"

enum transfer_status {
	TRANSFER_OK,
	TRANSFER_GONE, /* the other process is dead, or does not answer */
	TRANSFER_FAULT, /* registered memory was unmapped */
	TRANSFER_REVOKED, /* the key was taken away since it was looked up */
	TRANSFER_DENIED, /* process_vm_* is forbidden, and nobody copies */
	/* with one of them, of transfer(): what is copied could not be read */
	TRANSFER_READING = 8,
};

#define TRANSFER_IOVS 128

/* May one call bring several messages? */
#if defined(__x86_64__)
#define TRANSFER_IN_ORDER true
#else
#define TRANSFER_IN_ORDER false
#endif

/* process_vm calls in the making: all of one direction and one process. */
struct transfer_batch {
	struct iovec local[TRANSFER_IOVS], remote[TRANSFER_IOVS];
	const struct urxe_key *key[TRANSFER_IOVS]; /* of remote */
	unsigned int n;
	bool write;
	bool committed; /* it cannot be tried again */
	int32_t pid;
	struct urxe_peer *peer;
	struct urxe_context *ctx; /* who transfers */
	uint64_t bytes; /* sum of the iovecs */
};

static inline void transfer_begin(struct transfer_batch *b,
				  struct urxe_context *ctx, bool committed)
{
	b->n = 0;
	b->bytes = 0;
	b->ctx = ctx;
	b->committed = committed;
}

/* Can [seg] not go along with what is in the batch? */
static inline bool transfer_parts(const struct transfer_batch *b,
				  const struct urxe_seg *seg)
{
	return b->pid != seg->pid || b->peer != seg->peer ||
	       /* the same number in two PID namespaces is two processes */
	       (b->key[0]->flags ^ seg->key->flags) & URXE_MR_FOREIGN;
}

/* One run more, of the process that seg is in. */
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

/* Drop the first n bytes of a list. */
void iov_advance(struct iovec *iov, unsigned int count, uint64_t n);

/*
 * Carry out the batch and empty it.  moved gets the number of bytes that
 * arrived, also on failure.
 */
enum transfer_status transfer_flush(struct transfer_batch *b, uint64_t *moved);

void transfer_tail(char *dst, const char *src, uint64_t len);

/* Bytes that are mapped on both sides, the end last. */
static inline void transfer_local(char *dst, const char *src, uint64_t len)
{
	uint64_t v;

	if (len == 8 && !((uintptr_t)dst & 7)) {
		memcpy(&v, src, 8);
		store_release((_Atomic uint64_t *)(void *)dst, v);
	} else if (len) {
		transfer_tail(dst, src, len);
	}
}

/*
 * See whether the system lets us reach the process that opened p; p->bounce says
 * it then.  For those who must know before they copy.
 */
void transfer_probe(struct urxe_peer *p);

/*
 * Copy len bytes from one list of runs to another, for ctx; each list has at
 * least len bytes.  TRANSFER_GONE says that it may be tried again, from its
 * beginning, if the other process turns out to be alive; what cannot be is
 * committed, and waits longer for an answer (bounce_slot.h).
 */
enum transfer_status transfer(const struct urxe_seg *dst,
			      const struct urxe_seg *src, uint64_t len,
			      struct urxe_context *ctx, bool committed);
