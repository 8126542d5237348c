// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <sched.h>

#include "bounce.h"
#include "cq.h"
#include "quiesce.h"

/*
 * Waits before the owner of a raised guard is asked for its pulse.  On a busy
 * machine each of them may take as long as the others' time slices.
 */
#define PULSE_EVERY 16

static bool owner_alive(struct urxe_fabric *f, uint64_t entry)
{
	uint32_t slot, gen;

	return qpn_lookup(f->dev, entry & URXE_QPN_MASK, &slot, &gen) &&
	       fabric_context_alive(f, slot, gen);
}

void quiesce_guards(struct urxe_fabric *f)
{
	struct urxe_dev *dev = f->dev;
	uint32_t i, high, seq, waits;
	uint64_t entry;

	high = atomic_load_explicit(&dev->qp_high, memory_order_acquire);
	for (i = 0; i < high && i < URXE_MAX_QP; i++) {
		entry = atomic_load_explicit(&dev->qp[i], memory_order_acquire);
		if (!entry)
			continue;
		seq = atomic_load_explicit(&dev->guard[i].seq,
					   memory_order_seq_cst);
		for (waits = 1; seq & 1; waits++) {
			if (atomic_load_explicit(&dev->guard[i].seq,
						 memory_order_acquire) != seq)
				break;
			if (waits % PULSE_EVERY == 0 &&
			    !owner_alive(f, entry))
				break;
			sched_yield();
		}
	}
}

void quiesce(struct urxe_context *ctx)
{
	struct urxe_cq *cq;

	quiesce_guards(ctx->fabric);
	bounce_quiesce(ctx->fabric, ctx->arena);
	pthread_mutex_lock(&ctx->lock);
	gate_barrier();
	for (cq = ctx->cqs; cq; cq = cq->next)
		gate_wait(&cq->gate);
	pthread_mutex_unlock(&ctx->lock);
}

bool guard_busy(struct urxe_fabric *f, uint32_t qpn)
{
	uint32_t i = qpn_index(qpn);

	return atomic_load_explicit(&f->dev->guard[i].seq,
				    memory_order_seq_cst) & 1 &&
	       owner_alive(f, atomic_load_explicit(&f->dev->qp[i],
						   memory_order_acquire));
}
