/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RDMA atomics: read-modify-write of a 64-bit word.  The requester executes
 * it in its own process, under a lock of the fabric that the word's address
 * selects (shared/atomic_lock.h), so that it is atomic for all requesters.
 * In device memory a CPU atomic without the lock is sufficient.
 */
#pragma once

#include "responder.h"

/*
 * Execute the atomic operation of w on the 8 bytes at seg, which are memory
 * of key.  *old receives the previous value.  Returns RESP_SILENCE if the
 * lock's holder is stopped (the WR is retried), or the response for a failed
 * transfer.
 */
enum response atomics_execute(struct urxe_qp *qp, struct urxe_conn *c,
			      const struct urxe_seg *seg,
			      const struct urxe_key *key,
			      const struct urxe_wqe *w, uint64_t *old);
