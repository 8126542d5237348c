// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands for multicast groups: JOIN_IP_MCAST, JOIN_MCAST and LEAVE_MCAST.
 * RoCE has no subnet administrator to join a group with.  A join therefore
 * succeeds at once: the MULTICAST_JOIN event has the group's GID and address
 * handle attributes.  librdmacm attaches the QP.  ucma.c calls these
 * functions with the tables locked.
 */
#include "command.h"

/*
 * GID of a group: an IPv4 address is mapped to IPv6, an IPv6 address is the
 * GID itself, a loopback address gives GID 0.  -EINVAL for the wildcard.
 */
static int mcast_group_gid(const union cm_addr *a, uint8_t gid[16])
{
	if (cm_addr_zero(a))
		return -EINVAL;
	if (cm_addr_loopback(a))
		memset(gid, 0, 16);
	else
		cm_addr_raw(a, gid);
	return 0;
}

/* Raise MULTICAST_JOIN; nothing is raised if no event can be allocated. */
static void mcast_report(struct ucma *u, struct cm_id *id, struct cm_mc *mc,
			 const uint8_t gid[16])
{
	struct cm_event *e = cm_event_new(&u->cm, id, CM_EV_MULTICAST_JOIN, 0);
	struct rdma_ucm_ud_param *p;

	if (!e)
		return;
	p = &e->resp.param.ud;
	e->mc = cm_mc_ref(&u->cm, mc);
	e->resp.uid = mc->uid;
	e->resp.id = e->mc - 1;
	p->qp_num = URXE_MCAST_QPN;
	cm_set_qkey(id, 0);
	p->qkey = id->qkey;
	cm_fill_ah(&p->ah_attr, id, gid);
	p->ah_attr.grh.traffic_class = id->tos;
	cm_event_send(&u->cm, e);
}

static int ucma_mcast_join(struct ucma *u,
			   const struct rdma_ucm_join_mcast *cmd)
{
	struct rdma_ucm_create_id_resp resp;
	union cm_addr a;
	uint8_t gid[16];
	struct cm_mc *mc;
	struct cm_id *id;
	int ret;

	if (!ucma_take_addr(&cmd->addr, &a) ||
	    cmd->addr_size != cm_addr_size(&a) ||
	    cmd->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	id = ucma_id_dev(u, cmd->id, &ret);
	if (!id)
		return ret;
	if ((id->cma != CMA_ADDR_BOUND && id->cma != CMA_ADDR_RESOLVED) ||
	    id->qp_type != CM_QPT_UD || mcast_group_gid(&a, gid))
		return -EINVAL;
	mc = cm_mc_new(&u->cm);
	if (!mc)
		return -ENOMEM;
	mc->id = cm_id_ref(&u->cm, id);
	mc->uid = cmd->uid;
	resp.id = cm_mc_ref(&u->cm, mc) - 1;
	ret = ucma_put(cmd->response, &resp, sizeof(resp));
	if (ret) {
		cm_mc_free(&u->cm, mc);
		return ret;
	}
	mcast_report(u, id, mc, gid);
	return 0;
}

int ucma_join_mcast(struct ucma *u)
{
	return ucma_mcast_join(u, u->cmd);
}

int ucma_join_ip_mcast(struct ucma *u)
{
	const struct rdma_ucm_join_ip_mcast *cmd = u->cmd;
	struct rdma_ucm_join_mcast full = {
		.response = cmd->response,
		.uid = cmd->uid,
		.id = cmd->id,
		.addr_size = cmd->addr.sin6_family == AF_INET ?
				     sizeof(struct sockaddr_in) :
				     sizeof(struct sockaddr_in6),
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
	};

	memcpy(&full.addr, &cmd->addr, sizeof(cmd->addr));
	return ucma_mcast_join(u, &full);
}

int ucma_leave_mcast(struct ucma *u)
{
	const struct rdma_ucm_destroy_id *cmd = u->cmd;
	struct cm_mc *mc = cm_mc_at(&u->cm, cmd->id + 1);
	struct rdma_ucm_destroy_id_resp resp;
	struct cm_id *id;

	if (!mc)
		return -ENOENT;
	id = cm_id_at(&u->cm, mc->id);
	if (!id || id->chan != cm_chan_ref(&u->cm, u->c))
		return -EINVAL;
	cm_event_purge_mc(&u->cm, mc, u->fd);
	resp.events_reported = mc->events_reported;
	cm_mc_free(&u->cm, mc);
	return ucma_put(cmd->response, &resp, sizeof(resp));
}
