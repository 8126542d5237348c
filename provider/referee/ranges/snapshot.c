// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "engine/core/process.h"
#include "snapshot.h"

/* Hashes of blocks of memory; snapshot.h has the choice of the blocks. */
struct snapshot {
	uint64_t len; /* of the spans */
	uint32_t width, blocks; /* bytes of a block, number of blocks */
	uint64_t hash[]; /* of each block */
};

/* Return the number of bytes of a block: a multiple of 8, at most 256. */
static uint32_t snapshot_width(uint64_t len)
{
	uint64_t width = (len + SNAPSHOT_BLOCKS - 1) / SNAPSHOT_BLOCKS;

	width = (width + 7) & ~7ull;
	return width < SNAPSHOT_BYTES / SNAPSHOT_BLOCKS ?
		       (uint32_t)width :
		       SNAPSHOT_BYTES / SNAPSHOT_BLOCKS;
}

static uint64_t block_offset(const struct snapshot *s, uint32_t i)
{
	if (s->len <= SNAPSHOT_BYTES)
		return (uint64_t)i * s->width;
	return (uint64_t)((__uint128_t)(s->len - s->width) * i /
			  (s->blocks - 1));
}

static uint32_t block_len(const struct snapshot *s, uint32_t i)
{
	uint64_t left = s->len - block_offset(s, i);

	return left < s->width ? (uint32_t)left : s->width;
}

/* ------------------------------------------------------- reading memory */

/* The ranges that process_vm_readv(2) is to read, in order. */
struct reader {
	struct iovec from[SNAPSHOT_BLOCKS + URXE_MAX_SGE];
	unsigned long n;
	size_t total;
};

static void reader_add(struct reader *r, uint64_t at, size_t len)
{
	struct iovec *last = r->n ? &r->from[r->n - 1] : NULL;

	r->total += len;
	if (last && (uintptr_t)last->iov_base + last->iov_len == at)
		last->iov_len += len;
	else
		r->from[r->n++] = (struct iovec){ (void *)(uintptr_t)at, len };
}

/* Add the ranges of bytes [offset, offset + len) of the spans. */
static void reader_add_block(struct reader *r, const struct spans *s,
			     uint64_t offset, size_t len)
{
	uint64_t here, n;
	int i;

	for (i = 0; i < s->n && len; i++) {
		here = s->span[i].end - s->span[i].at;
		if (offset >= here) {
			offset -= here;
			continue;
		}
		n = here - offset < len ? here - offset : len;
		reader_add(r, s->span[i].at + offset, n);
		offset = 0;
		len -= n;
	}
}

/* Return the address of the first byte that is missing if n were read. */
static uint64_t reader_address(const struct reader *r, size_t n)
{
	unsigned long i;

	for (i = 0; i < r->n; i++) {
		if (n < r->from[i].iov_len)
			return (uintptr_t)r->from[i].iov_base + n;
		n -= r->from[i].iov_len;
	}
	return 0;
}

/*
 * Return a copy of all blocks, one behind the other; the caller frees it.
 * NULL: *missing is the address of the first byte that cannot be read.  It is
 * 0 if process_vm_readv(2) is not allowed, or if there is no memory for the
 * copy.
 */
static unsigned char *snapshot_read(const struct snapshot *s,
				    const struct spans *spans,
				    uint64_t *missing)
{
	struct reader r = { .n = 0 };
	struct iovec to;
	int saved = errno;
	ssize_t n;
	uint32_t i;

	*missing = 0;
	for (i = 0; i < s->blocks; i++)
		reader_add_block(&r, spans, block_offset(s, i),
				 block_len(s, i));
	to.iov_len = r.total;
	to.iov_base = malloc(r.total);
	if (!to.iov_base)
		return NULL;
	n = process_vm_readv(urxe_pid, &to, 1, r.from, r.n, 0);
	if (n < 0 && errno == EFAULT)
		n = 0;
	errno = saved;
	if (n >= 0 && (size_t)n == r.total)
		return to.iov_base;
	if (n >= 0)
		*missing = reader_address(&r, (size_t)n);
	free(to.iov_base);
	return NULL;
}

/* ------------------------------------------------------- hashing */

/*
 * Return a hash of len bytes.  Different contents of at most 8 bytes have
 * different hashes.
 */
static uint64_t block_hash(const unsigned char *p, uint32_t len)
{
	uint64_t hash = 0, word;
	uint32_t n;

	for (; len; p += n, len -= n) {
		n = len < 8 ? len : 8;
		word = 0;
		memcpy(&word, p, n);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash;
}

struct snapshot *snapshot_take(const struct spans *spans, uint64_t *missing)
{
	uint32_t width = snapshot_width(spans->len), n, i;
	unsigned char *bytes, *p;
	struct snapshot *s;

	*missing = 0;
	if (!spans->len)
		return NULL;
	n = spans->len <= SNAPSHOT_BYTES ?
		    (uint32_t)((spans->len + width - 1) / width) :
		    SNAPSHOT_BLOCKS;
	s = malloc(sizeof(*s) + n * sizeof(s->hash[0]));
	if (!s)
		return NULL;
	s->len = spans->len;
	s->width = width;
	s->blocks = n;
	bytes = snapshot_read(s, spans, missing);
	if (!bytes) {
		free(s);
		return NULL;
	}
	for (i = 0, p = bytes; i < n; p += block_len(s, i), i++)
		s->hash[i] = block_hash(p, block_len(s, i));
	free(bytes);
	return s;
}

uint64_t snapshot_block(const struct snapshot *s, uint64_t from)
{
	uint32_t i;

	for (i = 0; i < s->blocks && block_offset(s, i) < from; i++)
		;
	return i < s->blocks ? block_offset(s, i) : s->len;
}

static bool block_same(const struct snapshot *s, uint32_t i,
		       const unsigned char *p)
{
	return s->hash[i] == block_hash(p, block_len(s, i));
}

enum snapshot_verdict snapshot_compare(const struct snapshot *then,
				       const struct spans *spans, uint64_t from,
				       struct span *where)
{
	enum snapshot_verdict verdict = SNAPSHOT_SAME;
	unsigned char *bytes, *p;
	uint64_t missing;
	uint32_t i;

	bytes = snapshot_read(then, spans, &missing);
	if (!bytes) {
		where->at = where->end = missing;
		return missing ? SNAPSHOT_MISSING : SNAPSHOT_SAME;
	}
	for (i = 0, p = bytes; i < then->blocks; p += block_len(then, i), i++) {
		if (block_offset(then, i) < from || block_same(then, i, p))
			continue;
		where->at = spans_address(spans, block_offset(then, i));
		where->end = where->at + block_len(then, i);
		verdict = SNAPSHOT_CHANGED;
		break;
	}
	free(bytes);
	return verdict;
}
