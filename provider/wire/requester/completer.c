// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Responses that the socket owner's thread processes, see completer.h. */
#include <stddef.h>

#include "base/compiler.h"
#include "completer.h"
#include "state.h"

static struct completer *completer_of(struct inbox_bypass *b)
{
	return (struct completer *)((char *)b -
				    offsetof(struct completer, bypass));
}

static void completer_unpin(struct completer *c, struct urxe_qp *qp)
{
	pthread_mutex_lock(&c->ctx->lock);
	qp_unpin(qp);
	pthread_mutex_unlock(&c->ctx->lock);
}

static void completer_leave(struct inbox_bypass *b)
{
	struct completer *c = completer_of(b);
	struct urxe_qp *qp = c->qp;

	if (likely(!qp))
		return;
	c->qp = NULL;
	requester_proceed(qp);
	qp_leave(qp);
	completer_unpin(c, qp);
}

static bool completer_enter(struct completer *c, uint32_t qpn)
{
	struct urxe_qp *qp;

	if (pthread_mutex_trylock(&c->ctx->lock))
		return false;
	qp = context_qp(c->ctx, qpn);
	if (qp && qp->qpn == qpn && qp_enter(qp)) {
		qp_pin(qp);
		c->qp = qp;
	}
	pthread_mutex_unlock(&c->ctx->lock);
	if (!c->qp)
		return false;
	if (requester_is_plain(qp)) {
		requester_take(qp, qp->wire); /* earlier responses */
		return true;
	}
	c->qp = NULL;
	qp_leave(qp);
	completer_unpin(c, qp);
	return false;
}

static bool completer_take(struct inbox_bypass *b, const struct wire_packet *p,
			   const struct wire_path *path)
{
	struct completer *c = completer_of(b);
	const uint32_t qpn = p->bth.qpn;
	struct inbox_answer a = { .piece = { p->payload },
				  .bytes = { p->length } };

	if (c->qp && c->qp->qpn != qpn)
		completer_leave(b);
	if (!inbox_answer_head(p, &a.head) ||
	    !inbox_accepts(&c->ctx->arena->qp[qpn_index(qpn)], qpn, path) ||
	    (!c->qp && !completer_enter(c, qpn)))
		return false;
	requester_take_answer(c->qp, c->qp->wire, &a);
	return true;
}

void completer_begin(struct completer *c, struct urxe_context *ctx)
{
	*c = (struct completer){
		.bypass = { .take = completer_take, .leave = completer_leave },
		.ctx = ctx,
	};
}
