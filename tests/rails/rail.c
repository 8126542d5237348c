// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>

#include "rail.h"

void check(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

void rail_open(struct rail *r, struct ibv_device *device, uint32_t depth,
	       size_t bytes)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { depth, depth, 1, 1, 0 } };

	r->ctx = ibv_open_device(device);
	check(r->ctx, "ibv_open_device");
	r->pd = ibv_alloc_pd(r->ctx);
	r->cq = ibv_create_cq(r->ctx, 2 * (int)depth, NULL, NULL, 0);
	r->buffer = calloc(1, bytes);
	check(r->pd && r->cq && r->buffer, "objects of a rail");
	r->mr = ibv_reg_mr(r->pd, r->buffer, bytes, access);
	init.send_cq = init.recv_cq = r->cq;
	r->qp = ibv_create_qp(r->pd, &init);
	check(r->mr && r->qp, "QP of a rail");
}

void rail_close(struct rail *r)
{
	check(!ibv_destroy_qp(r->qp) && !ibv_dereg_mr(r->mr) &&
		      !ibv_destroy_cq(r->cq) && !ibv_dealloc_pd(r->pd) &&
		      !ibv_close_device(r->ctx),
	      "destruction of a rail");
	free(r->buffer);
}

void rail_modify(struct rail *r, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	check(!ibv_modify_qp(r->qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
}

void rail_init(struct rail *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ };

	check(!ibv_modify_qp(r->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS),
	      "INIT");
}

void rail_connect(struct rail *r, uint32_t qpn, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.min_rnr_timer = 1,
		.max_dest_rd_atomic = 8,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = *gid,
				      .sgid_index = GID_INDEX,
				      .hop_limit = 64 } },
	};

	check(!ibv_modify_qp(r->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER),
	      "RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 10;
	attr.retry_cnt = 1;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 8;
	check(!ibv_modify_qp(r->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC),
	      "RTS");
}

void rail_gid(struct rail *r, union ibv_gid *gid)
{
	check(!ibv_query_gid(r->ctx, 1, GID_INDEX, gid), "ibv_query_gid");
}
