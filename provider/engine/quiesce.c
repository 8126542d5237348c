// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "bounce.h"
#include "cq.h"
#include "quiesce.h"

/* Whose guard it is. */
struct owner {
	struct urxe_fabric *f;
	uint64_t entry; /* of the QP directory */
};

static bool owner_dead(void *arg)
{
	const struct owner *o = arg;
	uint32_t slot, gen;

	return !qpn_lookup(o->f->dev, URXE_DIR_QPN(o->entry), &slot, &gen) ||
	       !fabric_context_alive(o->f, slot, gen);
}

void quiesce_guards(struct urxe_fabric *f)
{
	struct urxe_dev *dev = f->dev;
	struct owner o = { .f = f };
	uint32_t i, high;

	high = load_acquire(&dev->qp_high);
	for (i = 0; i < high && i < URXE_MAX_QP; i++) {
		o.entry = load_acquire(&dev->qp[i]);
		if (o.entry)
			presence_wait(&dev->guard[i].requester, owner_dead, &o);
	}
}

void quiesce(struct urxe_context *ctx)
{
	struct urxe_cq *cq;

	quiesce_guards(ctx->fabric);
	bounce_quiesce(ctx->fabric, ctx->arena);
	pthread_mutex_lock(&ctx->lock);
	presence_barrier();
	for (cq = ctx->cqs; cq; cq = cq->next)
		gate_wait(&cq->gate);
	pthread_mutex_unlock(&ctx->lock);
}

bool guard_busy(struct urxe_fabric *f, uint32_t qpn)
{
	uint32_t i = qpn_index(qpn);
	struct owner o = { .f = f };

	if (!presence_is_inside(&f->dev->guard[i].requester))
		return false;
	o.entry = load_acquire(&f->dev->qp[i]);
	return !owner_dead(&o);
}
