// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The verbs of the data path: the engine's functions, called with the
 * engine's part of libibverbs' objects.
 */
#include "cq.h"
#include "engine/poll/poller.h"
#include "engine/exec/sq_post.h"
#include "qp.h"
#include "srq.h"
#include "verbs.h"

int urxe_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad)
{
	return sq_post(to_uqp(qp), wr, bad);
}

int urxe_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad)
{
	return rq_post_recv(to_uqp(qp), wr, bad);
}

int urxe_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad)
{
	return srq_post_recv(to_usrq(srq), wr, bad);
}

int urxe_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return poll_cq(to_ucq(cq), n, wc);
}
