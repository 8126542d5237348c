// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <sys/uio.h>

#include "transfer.h"

void transfer_tail(char *dst, const char *src, uint64_t len)
{
	const uint64_t last = len - 1;
	const uint64_t word = len & ~7ull;
	uint64_t v;

	/* whole words at a word boundary: the last word in one store */
	if (len == word && !((uintptr_t)dst & 7)) {
		memcpy(dst, src, len - 8);
		memcpy(&v, src + len - 8, 8);
		atomic_store_explicit((_Atomic uint64_t *)(void *)(dst + len - 8),
				      v, memory_order_release);
		return;
	}
	memcpy(dst, src, last);
	atomic_store_explicit((_Atomic uint8_t *)(void *)(dst + last),
			      (uint8_t)src[last], memory_order_release);
}

static enum transfer_status status_of(int err, int32_t pid)
{
	switch (err) {
	case ESRCH:
		return TRANSFER_GONE;
	case EPERM:
	case ENOSYS:
		urxe_why("the system forbids copying to process %d (Yama, seccomp or another user); see urxe doctor",
			 (int)pid);
		return TRANSFER_DENIED;
	default:
		return TRANSFER_FAULT;
	}
}

/* Drop the first n bytes of a batch's iovecs. */
static void advance(struct iovec *iov, unsigned int count, uint64_t n)
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
		n = (b->write ? process_vm_writev : process_vm_readv)(
			b->pid, b->local, b->n, b->remote, b->n, 0);
		if (n <= 0) {
			status = status_of(n ? errno : EFAULT, b->pid);
			break;
		}
		done += n;
		if (done < b->bytes) {
			/* a fault in the middle, or more than one call takes */
			advance(b->local, b->n, n);
			advance(b->remote, b->n, n);
		}
	}
	if (moved)
		*moved = done;
	b->n = 0;
	b->bytes = 0;
	errno = saved;
	return status;
}

static enum transfer_status add(struct transfer_batch *b, bool write,
				int32_t pid, char *local, uint64_t va,
				uint64_t len)
{
	enum transfer_status status = TRANSFER_OK;

	if (b->n && (b->n == TRANSFER_IOVS || b->write != write ||
		     b->pid != pid))
		status = transfer_flush(b, NULL);
	b->write = write;
	b->pid = pid;
	b->local[b->n].iov_base = local;
	b->local[b->n].iov_len = len;
	b->remote[b->n].iov_base = (void *)(uintptr_t)va;
	b->remote[b->n].iov_len = len;
	b->n++;
	b->bytes += len;
	return status;
}

/* Neither side is mapped here: through a buffer of our own. */
static enum transfer_status bounce(struct transfer_batch *b, int32_t dst_pid,
				   uint64_t dst, int32_t src_pid, uint64_t src,
				   uint64_t len)
{
	enum transfer_status status = TRANSFER_OK;
	char buf[16384];
	uint64_t n;

	while (len && !status) {
		n = len < sizeof(buf) ? len : sizeof(buf);
		status = add(b, false, src_pid, buf, src, n);
		if (!status)
			status = transfer_flush(b, NULL);
		if (!status)
			status = add(b, true, dst_pid, buf, dst, n);
		if (!status)
			status = transfer_flush(b, NULL);
		dst += n;
		src += n;
		len -= n;
	}
	return status;
}

/* One run to one run. */
static enum transfer_status run(struct transfer_batch *b,
				const struct urxe_seg *d, uint64_t doff,
				const struct urxe_seg *s, uint64_t soff,
				uint64_t len)
{
	if (d->ptr && s->ptr) {
		transfer_local(d->ptr + doff, s->ptr + soff, len);
		return TRANSFER_OK;
	}
	if (!d->ptr && !d->pid) /* the null MR swallows ... */
		return TRANSFER_OK;
	if (!s->ptr && !s->pid) { /* ... and reads as zero */
		static char zero[4096];
		enum transfer_status status = TRANSFER_OK;
		uint64_t n;

		if (d->ptr)
			memset(d->ptr + doff, 0, len);
		for (; !d->ptr && len && !status; doff += n, len -= n) {
			n = len < sizeof(zero) ? len : sizeof(zero);
			status = add(b, true, d->pid, zero, d->va + doff, n);
		}
		return status;
	}
	if (s->ptr)
		return add(b, true, d->pid, s->ptr + soff, d->va + doff, len);
	if (d->ptr)
		return add(b, false, s->pid, d->ptr + doff, s->va + soff, len);
	return bounce(b, d->pid, d->va + doff, s->pid, s->va + soff, len);
}

enum transfer_status transfer(const struct urxe_seg *dst,
			      const struct urxe_seg *src, uint64_t len)
{
	enum transfer_status status = TRANSFER_OK;
	uint64_t doff = 0, soff = 0, n;
	struct transfer_batch b;

	b.n = 0;
	b.bytes = 0;
	while (len && !status) {
		n = len;
		if (n > dst->len - doff)
			n = dst->len - doff;
		if (n > src->len - soff)
			n = src->len - soff;
		if (n)
			status = run(&b, dst, doff, src, soff, n);
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
	if (b.n && !status)
		status = transfer_flush(&b, NULL);
	return status;
}
