/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The call table: calls of libibverbs and librdmacm in which threads are
 * blocked, for `urxe why`.  Nothing else reads it.
 *
 * A slot belongs to the process in `owner`.  A thread claims a free slot by a
 * compare-and-swap of owner, or the slot of a dead process, before it may
 * block, and frees it when the call returns.  `kind` is stored last (release)
 * and cleared first, so the other members are valid where it is not 0.
 */
#pragma once

#include <stdalign.h>
#include <stdint.h>

#include "base/atomic.h"

enum urxe_call_kind {
	URXE_CALL_NONE,
	/* channels: `object` is the inode of the FIFO */
	URXE_CALL_GET_CQ_EVENT,
	URXE_CALL_GET_ASYNC_EVENT,
	URXE_CALL_GET_CM_EVENT,
	/* waits for acknowledgements of `events`; `object` is the index or QPN
	 */
	URXE_CALL_DESTROY_CQ,
	URXE_CALL_DESTROY_QP,
	URXE_CALL_DESTROY_SRQ,
	/* the same, but for `event`, the type of the last one */
	URXE_CALL_DESTROY_ID,
	URXE_CALL_LEAVE_MULTICAST,
	URXE_CALL_MIGRATE_ID,
	/* waits for the requester of slot `object` of the QP directory */
	URXE_CALL_QUIESCE_MR,
	URXE_CALL_QUIESCE_MW,
	URXE_CALL_QUIESCE_QP,
	URXE_CALL_QUIESCE_CQ,
	URXE_CALL_QUIESCE_SRQ,
	URXE_CALL_KINDS
};

struct urxe_call {
	alignas(64) _Atomic uint32_t owner; /* struct urxe_process; 0: free */
	_Atomic uint32_t kind;
	_Atomic uint32_t tid;
	_Atomic uint32_t context; /* its slot, for objects of a context */
	_Atomic uint64_t object;
	_Atomic uint64_t since; /* clock_now() */
	_Atomic uint32_t events; /* that are not acknowledged */
	_Atomic uint32_t event; /* enum rdma_cm_event_type */
};

#define URXE_MAX_CALLS 1024

/*
 * The preload library has the symbol urxe_watch_cm, by which the referee learns
 * of a call that is about to wait for acknowledgements of events of an
 * rdma_cm_id.  unacked() returns how many are outstanding, and stores the type
 * of the last one.
 */
typedef void urxe_cm_waits(const char *call, const void *id,
			   uint32_t (*unacked)(const void *id,
					       uint32_t *event));
