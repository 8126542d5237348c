// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Installation of a transport in each QP that has a send queue, see attach.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "attach.h"
#include "engine/exec/retry.h"
#include "parts.h"
#include "verbs/context.h"
#include "verbs/qp.h"

static struct pabi_ops next;
static bool (*attach)(struct urxe_qp *qp);

static struct ibv_qp *attach_transport(struct ibv_qp *ibqp)
{
	struct urxe_qp *qp;

	if (!ibqp)
		return NULL;
	qp = to_uqp(ibqp);
	/* an XRC_RECV QP has no send queue */
	if (!qp->scq || attach(qp))
		return ibqp;
	next.destroy_qp(ibqp);
	errno = ENOMEM;
	return NULL;
}

static struct ibv_qp *attach_create_qp(struct ibv_pd *pd,
				       struct ibv_qp_init_attr *init)
{
	return attach_transport(next.create_qp(pd, init));
}

static struct ibv_qp *attach_create_qp_ex(struct ibv_context *ctx,
					  struct ibv_qp_init_attr_ex *attr)
{
	return attach_transport(next.create_qp_ex(ctx, attr));
}

static int attach_destroy_qp(struct ibv_qp *ibqp)
{
	void *transport = to_uqp(ibqp)->transport_data;
	int ret = next.destroy_qp(ibqp);

	if (!ret)
		free(transport);
	return ret;
}

/*
 * Make progress on all QPs of @ctx, before a CQ is polled. The program may
 * poll only the receive CQ of a QP while the peer waits for the WRs of its
 * send queue. errno is kept.
 */
static void progress_all(struct ibv_context *ctx)
{
	int saved = errno;

	retry_all(to_uctx(ctx));
	errno = saved;
}

static int attach_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	progress_all(cq->context);
	return next.poll_cq(cq, n, wc);
}

static start_poll_fn *_Atomic next_start_poll;

static int attach_start_poll(struct ibv_cq_ex *cq,
			     struct ibv_poll_cq_attr *attr)
{
	progress_all(cq->context);
	return load_acquire(&next_start_poll)(cq, attr);
}

static struct ibv_cq_ex *attach_create_cq_ex(struct ibv_context *ctx,
					     struct ibv_cq_init_attr_ex *attr)
{
	return start_poll_replace(next.create_cq_ex(ctx, attr),
				  &next_start_poll, attach_start_poll);
}

void attach_wrap(struct pabi_ops *ops, bool (*with)(struct urxe_qp *qp))
{
	next = *ops;
	attach = with;
	ops->create_cq_ex = attach_create_cq_ex;
	ops->create_qp = attach_create_qp;
	ops->create_qp_ex = attach_create_qp_ex;
	ops->destroy_qp = attach_destroy_qp;
	ops->poll_cq = attach_poll_cq;
}
