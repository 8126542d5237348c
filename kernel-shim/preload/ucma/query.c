// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands that query an id: QUERY_ROUTE, QUERY (addresses, GIDs, path) and
 * INIT_QP_ATTR (the attributes with which librdmacm modifies the QP).  ucma.c
 * calls them with the tables locked.  QUERY_ROUTE and QUERY truncate their
 * response to the caller's buffer, since older versions of librdmacm read
 * less.
 */
#include <endian.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "command.h"

/* Selector of an MTU, rate or packet lifetime: exactly this value */
#define SELECT_EQUAL 2
static_assert(CM_MTU == IBV_MTU_4096, "value of the emulated port");

static bool id_has_path(const struct cm_id *id)
{
	return id->flags & CM_F_PATH;
}

static void path_fill(const struct cm *cm, const struct cm_id *id,
		      struct ib_user_path_rec *p)
{
	uint16_t slid, dlid;

	memcpy(p->dgid, id->dgid, 16);
	memcpy(p->sgid, id->sgid, 16);
	p->pkey = htobe16(cm_pkey(cm, id));
	if (!id_has_path(id))
		return;
	cm_path_lids(cm, id, &slid, &dlid);
	p->slid = htobe16(slid);
	p->dlid = htobe16(dlid);
	p->reversible = 1;
	p->mtu = cm_path_mtu(id);
	p->hop_limit = cm_is_infiniband(cm, id) ? 0 : CM_HOP_LIMIT;
	p->traffic_class = id->path_tos;
	p->flow_label = htobe32(id->path_flow);
	p->mtu_selector = SELECT_EQUAL;
	p->rate_selector = SELECT_EQUAL;
	p->rate = cm_path_rate(cm, id);
	p->packet_life_time_selector = SELECT_EQUAL;
	p->packet_life_time = id->path_life;
}

int ucma_query_route(struct ucma *u)
{
	const struct rdma_ucm_query *cmd = u->cmd;
	struct rdma_ucm_query_route_resp resp = { 0 };
	const struct cm_id *id = u->id;

	memcpy(&resp.src_addr, &id->src, sizeof(resp.src_addr));
	memcpy(&resp.dst_addr, &id->dst, sizeof(resp.dst_addr));
	if (id->flags & CM_F_DEVICE) {
		resp.node_guid = htobe64(cm_hca(&u->cm, id)->node_guid);
		resp.ibdev_index = URXE_DEV_INDEX + id->device - u->cm.f->first;
		resp.port_num = 1;
		resp.num_paths = id_has_path(id);
		path_fill(&u->cm, id, &resp.ib_route[0]);
	}
	return ucma_put(cmd->response, &resp, cm_min(u->out_len, sizeof(resp)));
}

static void addr_fill_ib(const struct cm *cm, const struct cm_id *id,
			 const union cm_addr *a, const uint8_t gid[16],
			 void *out)
{
	struct cm_sockaddr_ib ib = { .sib_family = CM_AF_IB };

	if (a->sa.sa_family == CM_AF_IB) {
		ib = a->ib;
	} else {
		ib.sib_pkey = htobe16(cm_pkey(cm, id));
		memcpy(ib.sib_addr, gid, 16);
		ib.sib_sid = htobe64(cm_service_id(id, a));
		ib.sib_sid_mask = ~0ull;
	}
	memcpy(out, &ib, sizeof(ib));
}

/* Answer with both addresses of the id; with @gid, converted to AF_IB. */
static int query_addr(struct ucma *u, bool gid, uint64_t response)
{
	struct rdma_ucm_query_addr_resp resp = { 0 };
	const struct cm_id *id = u->id;

	/* old versions of librdmacm read no more than this */
	if (u->out_len < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	if (gid) {
		resp.src_size = resp.dst_size = sizeof(struct cm_sockaddr_ib);
		addr_fill_ib(&u->cm, id, &id->src, id->sgid, &resp.src_addr);
		addr_fill_ib(&u->cm, id, &id->dst, id->dgid, &resp.dst_addr);
	} else {
		resp.src_size = (uint16_t)cm_addr_size(&id->src);
		resp.dst_size = (uint16_t)cm_addr_size(&id->dst);
		memcpy(&resp.src_addr, &id->src, sizeof(id->src));
		memcpy(&resp.dst_addr, &id->dst, sizeof(id->dst));
	}
	if (id->flags & CM_F_DEVICE) {
		resp.node_guid = htobe64(cm_hca(&u->cm, id)->node_guid);
		resp.ibdev_index = URXE_DEV_INDEX + id->device - u->cm.f->first;
		resp.port_num = 1;
		resp.pkey = htobe16(cm_pkey(&u->cm, id));
	}
	return ucma_put(response, &resp, cm_min(u->out_len, sizeof(resp)));
}

static void path_fill_wire(const struct cm *cm, const struct cm_id *id,
			   struct ucma_wire_path *p)
{
	const uint32_t hops = cm_is_infiniband(cm, id) ? 0 : CM_HOP_LIMIT;
	uint16_t slid, dlid;

	memset(p, 0, sizeof(*p));
	cm_path_lids(cm, id, &slid, &dlid);
	p->slid = htobe16(slid);
	p->dlid = htobe16(dlid);
	memcpy(p->dgid, id->dgid, 16);
	memcpy(p->sgid, id->sgid, 16);
	p->flow_hop = htobe32(id->path_flow << 8 | hops);
	p->traffic_class = id->path_tos;
	p->reversible = 1 << 7;
	p->pkey = htobe16(cm_pkey(cm, id));
	p->mtu = SELECT_EQUAL << 6 | cm_path_mtu(id);
	p->rate = SELECT_EQUAL << 6 | cm_path_rate(cm, id);
	p->life_time = SELECT_EQUAL << 6 | id->path_life;
}

static int query_path(struct ucma *u, uint64_t response)
{
	const struct cm_id *id = u->id;
	union { /* path_data is a flexible array */
		struct rdma_ucm_query_path_resp resp;
		char room[sizeof(struct rdma_ucm_query_path_resp) +
			  sizeof(struct ib_path_rec_data)];
	} out;
	struct ib_path_rec_data *path = out.resp.path_data;
	size_t len = sizeof(out.resp);

	if (u->out_len < len)
		return -ENOSPC;
	memset(&out, 0, sizeof(out));
	out.resp.num_paths = id_has_path(id);
	if (id_has_path(id) && u->out_len >= sizeof(out)) {
		path->flags = IB_PATH_GMP | IB_PATH_PRIMARY |
			      IB_PATH_BIDIRECTIONAL;
		path_fill_wire(&u->cm, id,
			       (struct ucma_wire_path *)path->path_rec);
		len = sizeof(out);
	}
	return ucma_put(response, &out, len);
}

int ucma_query(struct ucma *u)
{
	const struct rdma_ucm_query *cmd = u->cmd;

	switch (cmd->option) {
	case RDMA_USER_CM_QUERY_ADDR:
	case RDMA_USER_CM_QUERY_GID:
		return query_addr(u, cmd->option == RDMA_USER_CM_QUERY_GID,
				  cmd->response);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(u, cmd->response);
	case UCMA_QUERY_IB_SERVICE: /* services cannot be resolved */
		return u->out_len < sizeof(struct ucma_query_service_resp) ?
			       -ENOSPC :
			       -ENODATA;
	default:
		return -ENOSYS;
	}
}

/* ---------------------------------------------------------------- QP */

/* Attributes of a QP that is not connected yet, or of a UD QP: any state. */
static int qp_attr_alone(struct cm_id *id, struct ib_uverbs_qp_attr *a)
{
	a->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (id->qp_type == CM_QPT_UD) {
		cm_set_qkey(id, 0);
		a->qkey = id->qkey;
		a->qp_attr_mask |= IBV_QP_QKEY;
	} else {
		a->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
	}
	return 0;
}

static int qp_attr_init(const struct cm_id *id, struct ib_uverbs_qp_attr *a)
{
	if (id->cm < CM_REQ_SENT || id->cm > CM_ESTABLISHED)
		return -EINVAL;
	a->qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS |
			  IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->responder_resources)
		a->qp_access_flags |= IBV_ACCESS_REMOTE_READ |
				      IBV_ACCESS_REMOTE_ATOMIC;
	return 0;
}

static int qp_attr_rtr(const struct cm *cm, const struct cm_id *id,
		       struct ib_uverbs_qp_attr *a)
{
	if (id->cm < CM_REQ_RCVD || id->cm > CM_ESTABLISHED)
		return -EINVAL;
	a->qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	cm_fill_path_ah(cm, &a->ah_attr, id);
	a->path_mtu = cm_path_mtu(id);
	a->dest_qp_num = id->remote_qpn;
	a->rq_psn = id->psn;
	if (id->qp_type == CM_QPT_RC || id->qp_type == CM_QPT_XRC_RECV) {
		a->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER;
		a->max_dest_rd_atomic = id->responder_resources;
	}
	return 0;
}

static int qp_attr_rts(const struct cm_id *id, struct ib_uverbs_qp_attr *a)
{
	if (id->cm < CM_REQ_RCVD || id->cm > CM_ESTABLISHED)
		return -EINVAL;
	a->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	a->sq_psn = id->remote_psn;
	if (id->qp_type == CM_QPT_RC || id->qp_type == CM_QPT_XRC_SEND) {
		a->qp_attr_mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_MAX_QP_RD_ATOMIC;
		a->retry_cnt = id->retry_count;
		a->rnr_retry = id->rnr_retry_count;
		a->max_rd_atomic = id->initiator_depth;
	}
	if (id->qp_type != CM_QPT_UC) {
		a->qp_attr_mask |= IBV_QP_TIMEOUT;
		a->timeout = id->flags & CM_F_TIMEOUT_SET ? id->timeout :
							    id->path_life + 1;
	}
	return 0;
}

static int qp_attr(const struct cm *cm, struct cm_id *id,
		   struct ib_uverbs_qp_attr *a)
{
	if (!(id->flags & CM_F_CM) || id->qp_type == CM_QPT_UD)
		return qp_attr_alone(id, a);
	switch (a->qp_state) {
	case IBV_QPS_INIT:
		return qp_attr_init(id, a);
	case IBV_QPS_RTR:
		return qp_attr_rtr(cm, id, a);
	case IBV_QPS_RTS:
		return qp_attr_rts(id, a);
	default:
		return -EINVAL;
	}
}

int ucma_init_qp_attr(struct ucma *u)
{
	const struct rdma_ucm_init_qp_attr *cmd = u->cmd;
	struct ib_uverbs_qp_attr attr = { .qp_state = cmd->qp_state,
					  .port_num = 1 };
	struct cm_id *id;
	int err;

	if (u->out_len < sizeof(attr))
		return -ENOSPC;
	if (cmd->qp_state > IBV_QPS_ERR)
		return -EINVAL;
	id = ucma_id_dev(u, cmd->id, &err);
	if (!id)
		return err;
	err = qp_attr(&u->cm, id, &attr);
	return err ? err : ucma_put(cmd->response, &attr, sizeof(attr));
}
