/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An opened device of this process: its arena, and the objects in it. */
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
	pthread_mutex_t lock; /* object lists */
	pthread_cond_t unpinned; /* a QP may be unlinked */
	struct wire_holder *holder; /* of the room of that name; NULL: none */
	struct urxe_service *_Atomic service; /* NULL until it is needed */
	/* it looks again by then, and was asked to, ns */
	_Atomic uint64_t service_at, service_due;
	/* it could not be made: when pollers do its work, ns */
	_Atomic bool unserved;
	_Atomic uint64_t round_at, life_at;
	struct urxe_bouncing *bouncing; /* bounce_serve.c; the same */
	/* why it would be: others may come, and there is what they may want */
	_Atomic bool exposed, has_private;
	/* what is in front of the IPv4 header of a datagram; 0: zeros */
	uint64_t grh_noise;
	bool has_wire; /* addresses that are not here are those of other hosts */
	struct urxe_cq *cqs;
	/* by QPN index and by number; pollers look there, see quiesce.h */
	struct urxe_qp *_Atomic qp[URXE_MAX_QP];
	struct urxe_srq *_Atomic srq[URXE_MAX_SRQ];
	/* event.h: by how many ns those are late that were kept, and when */
	uint64_t (*_Atomic async_late)(struct urxe_context *ctx);
	_Atomic uint64_t async_at;
	_Atomic uint32_t deaths; /* dev->deaths that were looked into */
	_Atomic uint64_t recover_at; /* not before that, ns */
	_Atomic uint64_t reaped; /* when a full queue asked for the dead, ns */
};

/*
 * Make ctx, which is zeroed, the context that cmd_fd is: map its fabric's
 * memory and its arena.  0 or -errno.
 */
int context_open(struct urxe_context *ctx, struct urxe_fabric *f, int cmd_fd);
void context_close(struct urxe_context *ctx);
/* Its keys are to name memory of this process, too.  0 or -errno */
int context_join(struct urxe_context *ctx);

/* NULL: there is none any more. */
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
