// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copying between processes: process_vm_readv/writev (path 3), and the
 * fallback to bouncers (path 4). transfer.h lists the paths. The
 * functions preserve errno.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/uio.h>

#include "bounce.h"
#include "engine/core/log.h"
#include "engine/core/process.h"
#include "transfer.h"
#include "engine/core/why_note.h"

/*
 * Return whether @err means that process_vm_* is forbidden. ESRCH is no proof
 * that the process is dead: it is returned as well if its first thread exited
 * before the others.
 */
static bool is_forbidden(int err)
{
	return err == EPERM || err == ENOSYS || err == EACCES;
}

void transfer_probe(struct urxe_peer *p)
{
	/* an address that is not mapped in any process */
	struct iovec nowhere = { (void *)(uintptr_t)-URXE_PAGE, 1 };
	struct iovec byte = { &(char){ 0 }, 1 };
	int saved = errno;

	if (!p->foreign_pids && p->arena->pid != urxe_pid &&
	    process_vm_readv(p->arena->pid, &byte, 1, &nowhere, 1, 0) < 0 &&
	    is_forbidden(errno))
		store_relaxed(&p->bounce, true);
	store_relaxed(&p->probed, true);
	errno = saved;
}

bool transfer_can_read(const struct urxe_seg *seg, uint64_t len)
{
	uint64_t at, n;

	for (; len; len -= n, seg++) {
		n = seg->len < len ? seg->len : len;
		if (!n || !seg->ptr)
			continue;
		at = nofault_missing(seg->ptr, n, false);
		if (at) {
			why_note(MEMORY, seg->pid,
				 seg->va + (at - (uintptr_t)seg->ptr));
			return false;
		}
	}
	return true;
}

/*
 * Note which memory faulted: the local memory, or else the first remote
 * address of the batch that has not been copied.
 */
static void transfer_fault(struct transfer_batch *b)
{
	uint64_t local;
	unsigned int i;

	for (i = 0; i + 1 < b->n && !b->remote[i].iov_len; i++)
		;
	/* later runs do not matter: they may belong to later WRs */
	local = nofault_missing(b->local[i].iov_base, b->local[i].iov_len,
				!b->write);
	b->local_failed = local;
	if (local)
		why_note(MEMORY, urxe_pid, local);
	else
		why_note(MEMORY, b->pid, (uintptr_t)b->remote[i].iov_base);
}

/* Copy the rest of the batch by path 4. */
static enum transfer_status transfer_bounce(struct transfer_batch *b, int err,
					    uint64_t *done)
{
	enum transfer_status status;

	if (is_forbidden(err) && !exchange_relaxed(&b->peer->bounce, true))
		urxe_note(
			"process_vm access to process %d is denied (Yama, seccomp or another user): using bounce buffers; see urxe doctor",
			(int)b->pid);
	status = bounce_flush(b, done);
	if (status == TRANSFER_DENIED && err == ESRCH)
		status = TRANSFER_GONE;
	if (status == TRANSFER_REVOKED)
		why_note(REVOKED, b->pid);
	else if (status == TRANSFER_FAULT)
		transfer_fault(b);
	else if (status)
		bounce_why(b, status);
	return status;
}

void iov_advance(struct iovec *iov, unsigned int count, uint64_t n)
{
	uint64_t k;

	for (; count && n; iov++, count--) {
		k = n < iov->iov_len ? n : iov->iov_len;
		iov->iov_base = (char *)iov->iov_base + k;
		iov->iov_len -= k;
		n -= k;
	}
}

enum transfer_status transfer_flush(struct transfer_batch *b, uint64_t *moved)
{
	enum transfer_status status = TRANSFER_OK;
	int saved = errno;
	uint64_t done = 0;
	ssize_t n;

	while (done < b->bytes) {
		/* forbidden, or the PID is of a foreign namespace */
		if (unlikely(load_relaxed(&b->peer->bounce) ||
			     b->key[0]->flags & URXE_MR_FOREIGN)) {
			status = transfer_bounce(b, 0, &done);
			break;
		}
		if (unlikely(!peer_pid_is_alive(b->peer, b->pid))) {
			status = TRANSFER_GONE;
			why_note(PROCESS_DIED, b->pid);
			break;
		}
		if (b->write)
			atomic_thread_fence(memory_order_release);
		n = (b->write ? process_vm_writev : process_vm_readv)(
			b->pid, b->local, b->n, b->remote, b->n, 0);
		if (unlikely(n <= 0)) {
			status = TRANSFER_FAULT;
			if (n && (is_forbidden(errno) || errno == ESRCH))
				status = transfer_bounce(b, errno, &done);
			else
				transfer_fault(b);
			break;
		}
		done += n;
		if (done < b->bytes) {
			/*
			 * a fault in the middle, or more than one call copies
			 */
			iov_advance(b->local, b->n, n);
			iov_advance(b->remote, b->n, n);
		}
	}
	if (moved)
		*moved = done;
	b->n = 0;
	b->bytes = 0;
	errno = saved;
	/* the source of a write is local */
	if (status && b->write == b->local_failed)
		status |= TRANSFER_READING;
	b->local_failed = false;
	return status;
}

static enum transfer_status transfer_put(struct transfer_batch *b, bool write,
					 const struct urxe_seg *seg,
					 char *local, uint64_t off,
					 uint64_t len)
{
	enum transfer_status status = TRANSFER_OK;

	if (b->n && (b->n == TRANSFER_IOVS || b->write != write ||
		     transfer_parts(b, seg)))
		status = transfer_flush(b, NULL);
	if (status)
		return status;
	b->write = write;
	transfer_add(b, seg, local, seg->va + off, len);
	return TRANSFER_OK;
}

/* Copy through a local buffer: neither side is mapped in this process. */
static enum transfer_status transfer_relay(struct transfer_batch *b,
					   const struct urxe_seg *d,
					   uint64_t doff,
					   const struct urxe_seg *s,
					   uint64_t soff, uint64_t len)
{
	enum transfer_status status = TRANSFER_OK;
	char buf[16384];
	uint64_t n;

	for (; len && !status; doff += n, soff += n, len -= n) {
		n = len < sizeof(buf) ? len : sizeof(buf);
		/*
		 * each call changes direction, which flushes what the other
		 * added
		 */
		status = transfer_put(b, false, s, buf, soff, n);
		if (!status)
			status = transfer_put(b, true, d, buf, doff, n);
	}
	return status ? status : transfer_flush(b, NULL);
}

/*
 * Note the fault at mapped address @at of the copy from @s to @d, and return
 * its status.
 */
static enum transfer_status __attribute__((cold, noinline))
mapped_fault(const struct urxe_seg *d, const struct urxe_seg *s, uint64_t soff,
	     uint64_t len, uint64_t at)
{
	const bool reading = at - (uintptr_t)(s->ptr + soff) < len;
	const struct urxe_seg *seg = reading ? s : d;

	why_note(MEMORY, seg->pid, seg->va + (at - (uintptr_t)seg->ptr));
	return reading ? TRANSFER_FAULT | TRANSFER_READING : TRANSFER_FAULT;
}

/* Copy @len bytes that are mapped here at both ends. */
static enum transfer_status transfer_mapped(const struct urxe_seg *d,
					    uint64_t doff,
					    const struct urxe_seg *s,
					    uint64_t soff, uint64_t len)
{
	struct nofault f;

	/* earlier messages are visible before this one */
	atomic_thread_fence(memory_order_release);
	f = nofault_copy(d->ptr + doff, s->ptr + soff, len);
	return likely(!f.left) ? TRANSFER_OK :
				 mapped_fault(d, s, soff, len, f.value);
}

/* Write @len zeros, the content of a null MR. */
static enum transfer_status transfer_zero(struct transfer_batch *b,
					  const struct urxe_seg *d,
					  uint64_t doff, uint64_t len)
{
	static char zero[4096];
	const struct urxe_seg s = { .ptr = zero };
	enum transfer_status status = TRANSFER_OK;
	uint64_t n;

	for (; len && !status; doff += n, len -= n) {
		n = len < sizeof(zero) ? len : sizeof(zero);
		status = d->ptr ? transfer_mapped(d, doff, &s, 0, n) :
				  transfer_put(b, true, d, zero, doff, n);
	}
	return status;
}

/* Copy @len bytes from one run to another. */
static enum transfer_status
transfer_run(struct transfer_batch *b, const struct urxe_seg *d, uint64_t doff,
	     const struct urxe_seg *s, uint64_t soff, uint64_t len)
{
	if (d->ptr && s->ptr)
		return transfer_mapped(d, doff, s, soff, len);
	if (!d->ptr && !d->pid) /* the null MR discards writes ... */
		return TRANSFER_OK;
	if (!s->ptr && !s->pid) /* ... and reads as zero */
		return transfer_zero(b, d, doff, len);
	if (s->ptr)
		return transfer_put(b, true, d, s->ptr + soff, doff, len);
	if (d->ptr)
		return transfer_put(b, false, s, d->ptr + doff, soff, len);
	return transfer_relay(b, d, doff, s, soff, len);
}

enum transfer_status transfer(const struct urxe_seg *dst,
			      const struct urxe_seg *src, uint64_t len,
			      struct urxe_context *ctx, bool committed)
{
	enum transfer_status status = TRANSFER_OK;
	uint64_t doff = 0, soff = 0, n;
	struct transfer_batch b;

	transfer_begin(&b, ctx, committed);
	while (len && !status) {
		n = len;
		if (n > dst->len - doff)
			n = dst->len - doff;
		if (n > src->len - soff)
			n = src->len - soff;
		if (n)
			status = transfer_run(&b, dst, doff, src, soff, n);
		doff += n;
		soff += n;
		len -= n;
		if (doff == dst->len) {
			dst++;
			doff = 0;
		}
		if (soff == src->len) {
			src++;
			soff = 0;
		}
	}
	return b.n && !status ? transfer_flush(&b, NULL) : status;
}
