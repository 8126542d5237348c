// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands for multicast groups: JOIN_IP_MCAST, JOIN_MCAST and LEAVE_MCAST.
 * RoCE has no subnet administrator to join a group with, and that of
 * InfiniBand is a table of the fabric (fabric/mcast.c).  A join therefore
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

/* Is it an MGID already, of any scope: ff1x:a01b::/32? */
static bool gid_is_assigned(const uint8_t gid[16])
{
	return gid[0] == 0xff && gid[1] >> 4 == 1 && gid[2] == 0xa0 &&
	       gid[3] == 0x1b;
}

/*
 * GID of a group on InfiniBand, as the kernel maps it (RFC 4391, section 4):
 * ff12:401b:P:: and 28 bits of an IPv4 address, or ff12:601b:P:: and 80 bits
 * of an IPv6 address; P is the P_Key.  The scope, 2, is that of the broadcast
 * group of the interface.  The port space UDP has 01 in place of 1b.
 */
static void mcast_group_mgid(const struct cm *cm, const struct cm_id *id,
			     const union cm_addr *a, uint8_t gid[16])
{
	const uint16_t pkey = cm_pkey(cm, id);
	const bool v4 = a->sa.sa_family == AF_INET;
	uint8_t raw[16];

	memcpy(raw, gid, 16);
	if ((!v4 && a->sa.sa_family != AF_INET6) || gid_is_assigned(raw))
		return;
	memset(gid, 0, 16);
	gid[0] = 0xff;
	gid[1] = 0x12;
	gid[2] = v4 ? 0x40 : 0x60;
	gid[3] = id->ps == RDMA_PS_UDP ? 0x01 : 0x1b;
	gid[4] = (uint8_t)(pkey >> 8);
	gid[5] = (uint8_t)pkey;
	if (v4) {
		memcpy(gid + 12, raw + 12, 4);
		gid[12] &= 0x0f;
	} else {
		memcpy(gid + 6, raw + 6, 10);
	}
}

/* InfiniBand: the MGID of the group, and the join of the port. */
static int mcast_join_subnet(struct cm *cm, struct cm_id *id,
			     const union cm_addr *a, struct cm_mc *mc,
			     bool receives, uint8_t gid[16])
{
	struct mcast_join join = {
		.mgid = gid,
		.device = id->device,
		.receives = receives,
		.pkey = cm_pkey(cm, id),
	};
	int ret;

	if (!cm_is_infiniband(cm, id))
		return 0;
	cm_set_qkey(id, 0);
	join.qkey = id->qkey;
	mcast_group_mgid(cm, id, a, gid);
	ret = mcast_port_join(cm->f, &join);
	if (ret < 0)
		return ret;
	mc->mlid = (uint16_t)ret;
	mc->device = id->device;
	mc->receives = receives;
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
	cm_fill_group_ah(&p->ah_attr, id, gid, mc->mlid);
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
	ret = mcast_join_subnet(&u->cm, id, &a, mc,
				cmd->join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER,
				gid);
	if (!ret)
		ret = ucma_put(cmd->response, &resp, sizeof(resp));
	if (ret) {
		cm_mc_leave(&u->cm, mc);
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
	cm_mc_leave(&u->cm, mc);
	return ucma_put(cmd->response, &resp, sizeof(resp));
}
