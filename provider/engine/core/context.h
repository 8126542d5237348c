/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A device context of this process (ibv_open_device or ibv_import_device):
 * its arena, the shared memory that holds its objects, and the private state
 * of those objects.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "fabric/fabric.h"

struct urxe_cq;
struct urxe_qp;
struct urxe_srq;

struct urxe_context {
	struct urxe_fabric *fabric;
	struct urxe_peer *self;
	struct urxe_arena *arena; /* self->arena */
	int cmd_fd;
	uint32_t slot, gen;
	uint32_t device; /* its number ... */
	struct urxe_hca *hca; /* ... and its state */
	struct urxe_profile profile; /* ... and what it shows and enforces */
	pthread_mutex_t lock; /* protects the object lists */
	pthread_cond_t unpinned; /* signaled when a QP loses its pins */
	/* wire interposer; NULL: not installed */
	struct socket_owner *socket_owner;
	/* a thread of this context is the socket owner */
	_Atomic bool receives;
	/*
	 * Called by a poller whose CQ stays empty, without locks, to look for
	 * work elsewhere, after that many polls; it yields if there is none,
	 * and then returns true.  NULL: not called
	 */
	bool (*_Atomic poller_waits)(struct urxe_context *ctx, uint32_t polls);
	struct urxe_service *_Atomic service; /* NULL until it is needed */
	/* a round of it: round_run(); set by context_open() */
	uint64_t (*round)(struct urxe_context *ctx, uint64_t *life, bool woken);
	/* when the service thread wakes up, and latest time requested; ns */
	_Atomic uint64_t service_at, service_due;
	/* no service thread can be created: pollers do its work ... */
	_Atomic bool no_service_thread;
	/* ... not before these times: timers, peers that exited; ns */
	_Atomic uint64_t round_at, liveness_at;
	struct urxe_bouncing *bouncing; /* bounce_serve.c; NULL: none */
	/* its conditions: peers may access ctx; it has private memory */
	_Atomic bool exposed, has_private;
	/* seed of the bytes before the IPv4 header of a datagram; 0: zeros */
	uint64_t grh_noise;
	bool has_wire; /* unknown addresses are those of other hosts */
	bool wire_is_ipv4; /* else IPv6: the address family of its socket */
	struct urxe_cq *cqs;
	_Atomic uint32_t eager_buffers; /* number of them, see cq/eager.h */
	/* number of those for READ responses, see shared/wire.h */
	_Atomic uint32_t read_inboxes;
	/*
	 * READ data requested from other hosts (wire/requester/budget.h):
	 * bytes; QPs that wait
	 */
	_Atomic uint64_t read_bytes;
	_Atomic uint32_t read_waiting;
	/* by QPN index and by number; read by pollers, see quiesce.h */
	struct urxe_qp *_Atomic qp[URXE_MAX_QP];
	struct urxe_srq *_Atomic srq[URXE_MAX_SRQ];
	/* event.h: delay of kept async events in ns, and when it ends */
	uint64_t (*_Atomic async_delay)(struct urxe_context *ctx);
	_Atomic uint64_t async_at;
	/*
	 * rq_recover.c: value of dev->recover_gen up to which it has recovered
	 */
	_Atomic uint32_t recovered_gen;
	_Atomic uint64_t recover_at; /* not before this time, ns */
	/* a queue with kept receives (rq.h) was created */
	_Atomic bool has_kept;
	_Atomic uint64_t reaped; /* last reaping for such a queue, ns */
};

/*
 * Look up a QP or SRQ of this process; NULL if it does not exist.  A poller
 * calls these inside a CQ's gate, for which the destroyer waits
 * (cq_wait_pollers()).
 */
static inline struct urxe_qp *context_qp(const struct urxe_context *ctx,
					 uint32_t qpn)
{
	return load_acquire(&ctx->qp[qpn_index(qpn)]);
}

static inline struct urxe_srq *context_srq(const struct urxe_context *ctx,
					   uint32_t index)
{
	return load_acquire(&ctx->srq[index]);
}
