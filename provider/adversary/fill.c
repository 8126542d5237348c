// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Filling the memory of receives and READs. See fill.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "engine/core/process.h"
#include "fill.h"

static void fill_add(struct fill *f, uint64_t at, size_t len)
{
	f->run[f->runs++] = (struct iovec){ (void *)(uintptr_t)at, len };
	f->len += len;
}

/*
 * Return the address of the SGE's bytes in this process; 0 if its lkey is
 * invalid, or if the bytes are not to be filled: of a null MR, or of another
 * process.
 */
static uint64_t fill_place(struct urxe_peer *self, uint32_t pd,
			   const struct ibv_sge *sge)
{
	const struct urxe_key *k;
	struct urxe_seg seg;

	k = mem_lookup(self, sge->lkey, pd, sge->addr, sge->length,
		       IBV_ACCESS_LOCAL_WRITE);
	if (!k || k->kind == URXE_MEM_NULL)
		return 0;
	mem_reach(self, k, sge->addr, sge->length, &seg);
	if (seg.ptr)
		return (uintptr_t)seg.ptr;
	return k->kind != URXE_MEM_DM && mem_is_mine(self, k) ? seg.va : 0;
}

/* List the memory of @wr in f->run, up to FILL_MAX_BYTES bytes. */
static void fill_gather(struct fill *f, struct urxe_peer *self, uint32_t pd,
			const struct ibv_recv_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;
	size_t room, len;
	uint64_t at;
	int i;

	for (i = 0; i < wr->num_sge && f->len < FILL_MAX_BYTES; i++, sge++) {
		at = sge->length ? fill_place(self, pd, sge) : 0;
		if (!at)
			continue;
		len = sge->length;
		room = FILL_MAX_BYTES - f->len;
		if (len <= room) {
			fill_add(f, at, len);
			continue;
		}
		fill_add(f, at, room / 2);
		fill_add(f, at + len - room / 2, room / 2);
	}
}

void fill_set(struct fill *f, struct urxe_peer *self, uint32_t pd,
	      const struct ibv_recv_wr *wr)
{
	char now[FILL_MAX_BYTES];
	struct iovec iov = { f->was, 0 };
	int saved = errno;
	size_t i;

	f->runs = 0;
	f->len = 0;
	fill_gather(f, self, pd, wr);
	iov.iov_len = f->len;
	if (!f->len || process_vm_readv(urxe_pid, &iov, 1, f->run, f->runs,
					0) != (ssize_t)f->len) {
		f->len = 0;
	} else {
		for (i = 0; i < f->len; i++)
			now[i] = f->was[i] ? (char)FILL_BYTE : 0;
		iov.iov_base = now;
		process_vm_writev(urxe_pid, &iov, 1, f->run, f->runs, 0);
	}
	errno = saved;
}

void fill_undo(const struct fill *f)
{
	struct iovec iov = { (void *)f->was, f->len };
	int saved = errno;

	if (f->len)
		process_vm_writev(urxe_pid, &iov, 1, f->run, f->runs, 0);
	errno = saved;
}
