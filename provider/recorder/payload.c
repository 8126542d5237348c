// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Record the first URXE_TRACE_PAYLOAD bytes of each message: of a SEND, WRITE
 * or ATOMIC WRITE when the request is sent, of a READ when its response was
 * received.
 *
 * The program may have unmapped the memory that a WR names. So memory of this
 * process is read with nofault.h or, where that has no signal handler, by a
 * system call that fails with EFAULT: process_vm_readv(2), or, where that is
 * forbidden, write(2) to a pipe.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/qp/qp.h"
#include "engine/copy/transfer.h"
#include "engine/qp/wqe.h"
#include "recorder.h"
#include "trace/trace.h"

/* values before the data: wr_id, op, psn, offset, bytes */
#define DATA_HEAD 5
#define DATA_BYTES ((TRACE_VALUES - DATA_HEAD) * sizeof(uint64_t))

static uint32_t wanted; /* bytes of each message */

int payload_begin(void)
{
	const char *text = getenv("URXE_TRACE_PAYLOAD");
	unsigned long n;
	char *end;

	if (!text || !*text)
		return 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || n > TRACE_MAX_PAYLOAD)
		return -EINVAL;
	wanted = (uint32_t)n;
	return 0;
}

static bool payload_by_pipe(uint64_t va, char *to, size_t n)
{
	ssize_t got = -1;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return false;
	if (write(fds[1], (const void *)(uintptr_t)va, n) == (ssize_t)n)
		got = read(fds[0], to, n);
	close(fds[0]);
	close(fds[1]);
	return got == (ssize_t)n;
}

/*
 * Read @n bytes at @va of this process. Return false if they cannot be read.
 * errno is kept.
 */
static bool payload_by_system(uint64_t va, char *to, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)(uintptr_t)va, n };
	int saved = errno;
	ssize_t got = process_vm_readv(urxe_pid, &local, 1, &remote, 1, 0);
	bool is_there = got == (ssize_t)n;

	if (got < 0 && errno != EFAULT)
		is_there = payload_by_pipe(va, to, n);
	errno = saved;
	return is_there;
}

/*
 * Read @n bytes from @off of an SGE, through its lkey as the engine does.
 * Return false if the lkey is invalid or the memory cannot be read.
 */
static bool payload_of_sge(const struct urxe_qp *qp, const struct urxe_sge *s,
			   uint64_t off, char *to, size_t n)
{
	struct urxe_peer *self = qp->ctx->self;
	struct urxe_seg dst = { .ptr = to, .len = n }, src;
	const struct urxe_key *k =
		mem_lookup(self, s->lkey, qp->sh->pd, s->addr, s->length, 0);

	if (!k)
		return false;
	if (k->kind != URXE_MEM_DM && k->kind != URXE_MEM_NULL &&
	    mem_is_mine(self, k) &&
	    (k->flags & URXE_MR_ODP || !nofault_is_safe()))
		return payload_by_system(k->va + (s->addr - k->iova) + off, to,
					 n);
	mem_reach(self, k, s->addr + off, n, &src);
	if (!src.ptr && src.pid)
		return false; /* another process, which may be stopped */
	return transfer(&dst, &src, n, qp->ctx, false) == TRANSFER_OK;
}

/* Read @n bytes of the data of @w from offset @off. */
static bool payload_read(const struct urxe_qp *qp, const struct urxe_wqe *w,
			 uint64_t off, char *to, size_t n)
{
	const struct urxe_sge *s;
	size_t part;
	int i;

	if (w->flags & IBV_SEND_INLINE) {
		memcpy(to, (const char *)w->sge + off, n);
		return true;
	}
	if (w->opcode == URXE_WR_ATOMIC_WRITE && !w->num_sge) {
		memcpy(to, w->write_data + off, n);
		return true;
	}
	for (i = 0; i < w->num_sge && n; i++) {
		s = &w->sge[i];
		if (off >= s->length) {
			off -= s->length;
			continue;
		}
		part = n < s->length - off ? n : s->length - off;
		if (!payload_of_sge(qp, s, off, to, part))
			return false;
		to += part;
		n -= part;
		off = 0;
	}
	return !n;
}

void payload_record(const struct urxe_qp *qp, const struct urxe_wqe *w,
		    uint32_t psn)
{
	uint64_t v[TRACE_VALUES];
	uint64_t length = w->length < wanted ? w->length : wanted, off, n;

	v[0] = w->wr_id;
	v[1] = w->opcode;
	v[2] = psn;
	for (off = 0; off < length; off += n) {
		n = length - off < DATA_BYTES ? length - off : DATA_BYTES;
		v[DATA_HEAD + (n - 1) / sizeof(*v)] = 0; /* unused bytes */
		if (!payload_read(qp, w, off, (char *)(v + DATA_HEAD), n))
			return;
		v[3] = off;
		v[4] = n;
		trace_at(clock_now(), TRACE_DATA, qp->qpn, v,
			 DATA_HEAD + (n + sizeof(*v) - 1) / sizeof(*v));
	}
}

uint32_t payload_is_wanted(void)
{
	return wanted;
}
