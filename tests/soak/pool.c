// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SRQs, which are kept full.  If a QP is destroyed, CQEs of its receives are
 * lost.  Each of them leaves a free entry in the SRQ and a buffer that is
 * never reported.  If no buffer is left, the worker closes and opens
 * everything again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "soak.h"

#define POSTED 64
#define BUFFERS 1024u
/*
 * Flag in the wr_id of a receive from an SRQ; the rest is the buffer's index
 */
#define POOL_ID (1ull << 62)
#define POOL_XRC (1ull << 61)

static struct pool {
	char (*buf)[MESSAGE_MAX];
	bool out[BUFFERS];
	struct ibv_mr *mr;
	uint32_t next;
} pools[2]; /* of the SRQ and the XRC SRQ */

/* Find a buffer that is not posted.  Return false if there is none. */
static bool pool_find(struct pool *p)
{
	uint32_t i;

	for (i = 0; i < BUFFERS; i++) {
		p->next = (p->next + 1) % BUFFERS;
		if (!p->out[p->next])
			return true;
	}
	return false;
}

static void pool_fill(struct pool *p, struct ibv_srq *srq, uint64_t id)
{
	struct ibv_sge sge = { .length = MESSAGE_MAX, .lkey = p->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	me->doing = "ibv_post_srq_recv";
	while (pool_find(p)) {
		wr.wr_id = id | p->next;
		sge.addr = (uintptr_t)p->buf[p->next];
		if (ibv_post_srq_recv(srq, &wr, &bad))
			return;
		p->out[p->next] = true;
	}
	w.tired = true;
}

static bool pool_alloc(struct pool *p)
{
	p->buf = calloc(BUFFERS, MESSAGE_MAX);
	return made("calloc", p->buf) &&
	       made("ibv_reg_mr",
		    p->mr = ibv_reg_mr(w.many_pd, p->buf, BUFFERS * MESSAGE_MAX,
				       IBV_ACCESS_LOCAL_WRITE));
}

static bool xrc_open(void)
{
	struct ibv_xrcd_init_attr x = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex s = {
		.attr = { .max_wr = POSTED, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = w.many_pd,
		.cq = w.cq,
	};

	x.fd = open(sh->xrcd, O_RDONLY | O_CLOEXEC);
	if (!made("open", x.fd >= 0))
		return false;
	w.xrcd = ibv_open_xrcd(w.ctx, &x);
	close(x.fd);
	if (!made("ibv_open_xrcd", w.xrcd))
		return false;
	s.xrcd = w.xrcd;
	return made("ibv_create_srq_ex", w.xsrq = ibv_create_srq_ex(w.ctx, &s));
}

bool pool_open(void)
{
	struct ibv_srq_init_attr s = {
		.attr = { .max_wr = POSTED, .max_sge = 1 },
	};

	return pool_alloc(&pools[0]) && pool_alloc(&pools[1]) &&
	       made("ibv_create_srq", w.srq = ibv_create_srq(w.many_pd, &s)) &&
	       xrc_open();
}

void pool_step(void)
{
	pool_fill(&pools[0], w.srq, POOL_ID);
	pool_fill(&pools[1], w.xsrq, POOL_ID | POOL_XRC);
}

bool pool_got(const struct ibv_wc *wc)
{
	bool xrc = wc->wr_id & POOL_XRC;
	uint32_t i = wc->wr_id % BUFFERS;

	if (!(wc->wr_id & POOL_ID))
		return false;
	if (!pools[xrc].out[i])
		broken("a receive is completed that was not posted");
	pools[xrc].out[i] = false;
	/* the target QP of XRC may be destroyed, but the CQ is the SRQ's */
	if (wc->status == IBV_WC_SUCCESS &&
	    !link_message(wc, pools[xrc].buf[i]) && !xrc)
		broken("a message for QP 0x%x, which is not there",
		       wc->qp_num);
	return true;
}

void pool_close(void)
{
	int i;

	if (w.xsrq)
		must("ibv_destroy_srq", !ibv_destroy_srq(w.xsrq));
	if (w.xrcd)
		must("ibv_close_xrcd", !ibv_close_xrcd(w.xrcd));
	if (w.srq)
		must("ibv_destroy_srq", !ibv_destroy_srq(w.srq));
	for (i = 0; i < 2; i++) {
		if (pools[i].mr)
			must("ibv_dereg_mr", !ibv_dereg_mr(pools[i].mr));
		free(pools[i].buf);
		pools[i] = (struct pool){ 0 };
	}
}
