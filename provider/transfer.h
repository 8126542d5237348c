/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Moving bytes.  Four paths, chosen by what mem_reach could do:
 *
 *  1. same process: memcpy
 *  2. memory that both sides map (DM, shared files): memcpy
 *  3. private memory of another process: process_vm_readv/writev
 *  4. where the system forbids 3: not built yet; the transfer is refused
 *
 * Paths 1 and 2 store the last bytes last, with release order: a program that
 * watches the end of a message sees all of it, as on a NIC that writes in
 * order.
 */
#ifndef URXE_TRANSFER_H
#define URXE_TRANSFER_H

#include <string.h>
#include <sys/uio.h>

#include "mem.h"

enum transfer_status {
	TRANSFER_OK,
	TRANSFER_GONE, /* the other process does not exist any more */
	TRANSFER_FAULT, /* registered memory was unmapped */
	TRANSFER_DENIED, /* the system forbids process_vm_* */
};

#define TRANSFER_IOVS 128

/* process_vm calls in the making: all of one direction and one process. */
struct transfer_batch {
	struct iovec local[TRANSFER_IOVS], remote[TRANSFER_IOVS];
	unsigned int n;
	bool write;
	int32_t pid;
	uint64_t bytes; /* sum of the iovecs */
};

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
		atomic_store_explicit((_Atomic uint64_t *)(void *)dst, v,
				      memory_order_release);
	} else if (len) {
		transfer_tail(dst, src, len);
	}
}

/*
 * Copy len bytes from one list of runs to another; each list has at least
 * len bytes.
 */
enum transfer_status transfer(const struct urxe_seg *dst,
			      const struct urxe_seg *src, uint64_t len);

#endif
