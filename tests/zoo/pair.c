// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two connected endpoints, and posting of WRs */
#include <stdio.h>
#include <stdlib.h>

#include "zoo.h"

#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define QP_ACCESS (ACCESS & ~IBV_ACCESS_LOCAL_WRITE)

/* Exit if the set-up of the test fails. */
static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(99);
}

struct ibv_context *the_device(void)
{
	static struct ibv_context *ctx;
	struct ibv_device **list;

	if (ctx)
		return ctx;
	list = ibv_get_device_list(NULL);
	must(list && list[0], "ibv_get_device_list");
	ctx = ibv_open_device(list[0]);
	must(ctx, "ibv_open_device");
	ibv_free_device_list(list);
	return ctx;
}

struct ibv_pd *the_pd(void)
{
	static struct ibv_pd *pd;

	if (!pd)
		pd = ibv_alloc_pd(the_device());
	must(pd, "ibv_alloc_pd");
	return pd;
}

/* ------------------------------------------------------- set-up */

static struct ibv_cq *cq_make(const struct how *how, struct end *e)
{
	struct ibv_cq *cq;

	cq = ibv_create_cq(the_device(), how->cqe ? how->cqe : 64, NULL,
			   e->chan, 0);
	must(cq, "ibv_create_cq");
	return cq;
}

/* Create the objects that a second pair may share. */
static void end_own(struct end *e, const struct how *how)
{
	if (how->channel) {
		e->chan = ibv_create_comp_channel(the_device());
		must(e->chan, "ibv_create_comp_channel");
	}
	e->cq = e->rcq = cq_make(how, e);
	e->buf = aligned_alloc(4096, BUF);
	must(e->buf, "aligned_alloc");
	memset(e->buf, 0, BUF);
	e->mr = ibv_reg_mr(the_pd(), e->buf, BUF, ACCESS);
	must(e->mr, "ibv_reg_mr");
}

static void end_make_qp(struct end *e, const struct how *how)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = e->cq,
		.recv_cq = e->rcq,
		.cap = { .max_send_wr = how->sends ? how->sends : 32,
			 .max_recv_wr = 64,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = 64 },
		.qp_type = how->type ? how->type : IBV_QPT_RC,
	};

	e->qp = ibv_create_qp(the_pd(), &attr);
	must(e->qp, "ibv_create_qp");
}

static void end_to_init(struct end *e)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qkey = QKEY,
				    .qp_access_flags = QP_ACCESS };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (e->qp->qp_type == IBV_QPT_UC)
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	mask |= e->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY :
					       IBV_QP_ACCESS_FLAGS;
	must(!ibv_modify_qp(e->qp, &attr, mask), "ibv_modify_qp to INIT");
}

static struct ibv_ah_attr the_address(void)
{
	struct ibv_ah_attr ah = { .is_global = 1,
				  .port_num = 1,
				  .grh = { .hop_limit = 1 } };

	must(!ibv_query_gid(the_device(), 1, 0, &ah.grh.dgid), "ibv_query_gid");
	return ah;
}

static void end_to_rtr(struct end *e, const struct how *how)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = e->peer->qp->qp_num,
		.max_dest_rd_atomic = how->dest_reads ? how->dest_reads : 16,
		.min_rnr_timer = 1,
		.ah_attr = the_address(),
	};
	int mask = IBV_QP_STATE;

	if (e->qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN;
	if (e->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	must(!ibv_modify_qp(e->qp, &attr, mask), "ibv_modify_qp to RTR");
}

static void end_to_rts(struct end *e, const struct how *how)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = how->rnr_retry,
				    .max_rd_atomic = how->reads ? how->reads :
								  16 };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (e->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	must(!ibv_modify_qp(e->qp, &attr, mask), "ibv_modify_qp to RTS");
}

/* Create or share CQs, buffers and channels. */
static void pair_own(struct pair *p, const struct how *how)
{
	if (how->same_as) {
		*p = *how->same_as;
		return;
	}
	memset(p, 0, sizeof(*p));
	end_own(&p->a, how);
	end_own(&p->b, how);
	if (!how->one_send_cq)
		return;
	p->a.rcq = cq_make(how, &p->a);
	p->b.rcq = p->b.cq;
	p->b.cq = p->a.cq;
}

void pair_make(struct pair *p, struct how how)
{
	pair_own(p, &how);
	p->a.peer = &p->b;
	p->b.peer = &p->a;
	end_make_qp(&p->a, &how);
	end_make_qp(&p->b, &how);
	end_to_init(&p->a);
	end_to_init(&p->b);
	end_to_rtr(&p->a, &how);
	end_to_rtr(&p->b, &how);
	end_to_rts(&p->a, &how);
	end_to_rts(&p->b, &how);
}

/* ------------------------------------------------------- posting */

static struct ibv_ah *the_ah(void)
{
	static struct ibv_ah *ah;
	struct ibv_ah_attr attr = the_address();

	if (!ah)
		ah = ibv_create_ah(the_pd(), &attr);
	must(ah, "ibv_create_ah");
	return ah;
}

static bool is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	       op == IBV_WR_ATOMIC_CMP_AND_SWP;
}

int post_work(struct end *e, struct work w)
{
	struct ibv_sge sge = {
		.addr = w.addr ? (uintptr_t)w.addr : (uintptr_t)e->buf + w.from,
		.length = is_atomic(w.op) ? 8 : w.len,
		.lkey = w.addr ? w.lkey : e->mr->lkey,
	};
	struct ibv_send_wr wr = { .wr_id = w.id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = w.op,
				  .send_flags = w.flags,
				  .imm_data = w.imm },
			   *bad;
	uint64_t at = (uintptr_t)e->peer->buf + w.at;
	uint32_t rkey = w.rkey ? w.rkey : e->peer->mr->rkey;

	if (e->qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = the_ah();
		wr.wr.ud.remote_qpn = e->peer->qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	} else if (is_atomic(w.op)) {
		wr.wr.atomic.remote_addr = at;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = w.add;
	} else {
		wr.wr.rdma.remote_addr = at;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(e->qp, &wr, &bad);
}

void post_receive(struct end *e, uint64_t id, size_t at, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)e->buf + at,
			       .length = len,
			       .lkey = e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	must(!ibv_post_recv(e->qp, &wr, &bad), "ibv_post_recv");
}

/* ------------------------------------------------------- waiting */

/*
 * Longer than any delay of the adversary; a count, so that it is repeatable
 */
#define POLLS 100000

void look_busy(struct end *e)
{
	struct ibv_wc none;

	ibv_poll_cq(e->cq, 0, &none);
}

static bool next_of(struct end *e, struct ibv_cq *cq, struct ibv_wc *wc)
{
	int i, n;

	for (i = 0; i < POLLS; i++) {
		n = ibv_poll_cq(cq, 1, wc);
		expect(n >= 0, "ibv_poll_cq fails");
		if (n)
			return true;
		look_busy(e->peer);
		if (cq != e->cq)
			look_busy(e);
	}
	return false;
}

bool next_wc(struct end *e, struct ibv_wc *wc)
{
	return next_of(e, e->cq, wc);
}

bool next_recv_wc(struct end *e, struct ibv_wc *wc)
{
	return next_of(e, e->rcq, wc);
}

static struct ibv_wc wait_of(struct end *e, struct ibv_cq *cq)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	expect(next_of(e, cq, &wc), "no completion");
	expect(!wc.status, ibv_wc_status_str(wc.status));
	return wc;
}

struct ibv_wc wait_for(struct end *e)
{
	return wait_of(e, e->cq);
}

struct ibv_wc wait_for_recv(struct end *e)
{
	return wait_of(e, e->rcq);
}

bool all_are(const char *p, char c, size_t len)
{
	while (len && *p == c) {
		p++;
		len--;
	}
	return !len;
}
