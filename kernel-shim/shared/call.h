/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The call table, urxe_dev.call[]: calls of libibverbs and librdmacm in which
 * threads are blocked.  It is written by call_begin() and call_end()
 * (kernel-shim/fabric/call.c) and read only by diagnostic tools (urxe why).
 *
 * A slot belongs to the process whose id is `owner`.  Before it may block, a
 * thread claims a free slot, or the slot of a dead process, by a
 * compare-and-swap of owner.  It also reuses a slot that it left by
 * longjmp(3).  It frees the slot when the call returns.  `kind` is stored
 * last (release) and cleared first, so the other members are valid while it
 * is not 0.  If no slot is free, the call is not listed.
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
	/*
	 * waits for ibv_ack_cq_events() or ibv_ack_async_event(); `events`
	 * are outstanding; `object` is the index or QP number
	 */
	URXE_CALL_DESTROY_CQ,
	URXE_CALL_DESTROY_QP,
	URXE_CALL_DESTROY_SRQ,
	/* waits for rdma_ack_cm_event(): `events`, the last one is `event` */
	URXE_CALL_DESTROY_ID,
	URXE_CALL_LEAVE_MULTICAST,
	URXE_CALL_MIGRATE_ID,
	/*
	 * waits for a guard (guard.h): `object` is the index of its QP
	 * number, or URXE_MAX_QP + the index of a socket owner's slot
	 */
	URXE_CALL_QUIESCE_MR,
	URXE_CALL_QUIESCE_MW,
	URXE_CALL_QUIESCE_QP,
	URXE_CALL_QUIESCE_CQ,
	URXE_CALL_QUIESCE_SRQ,
	URXE_CALL_KINDS
};

struct urxe_call {
	alignas(64) _Atomic uint32_t owner; /* id of a process; 0: free */
	_Atomic uint32_t kind;
	_Atomic uint32_t tid;
	_Atomic uint32_t context; /* context slot of the object */
	_Atomic uint64_t object;
	_Atomic uint64_t since; /* clock_now() when it began */
	_Atomic uint32_t events; /* not acknowledged yet */
	_Atomic uint32_t event; /* enum rdma_cm_event_type */
};

#define URXE_MAX_CALLS 1024

/*
 * Callback for librdmacm calls that are about to wait until events of an
 * rdma_cm_id are acknowledged.  The referee (urxe run --check) passes it to
 * urxe_watch_cm(), which the preload library exports.  @call is the name of
 * the call.  @unacked returns the number of outstanding events and stores the
 * type of the last one.
 */
typedef void urxe_cm_waits(const char *call, const void *id,
			   uint32_t (*unacked)(const void *id,
					       uint32_t *event));
