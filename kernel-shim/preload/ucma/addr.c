// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands that bind an id, make it listen, and resolve addresses and routes:
 * BIND_IP, BIND, LISTEN, RESOLVE_IP, RESOLVE_ADDR, RESOLVE_ROUTE and
 * RESOLVE_IB_SERVICE.  ucma.c calls them with the tables locked.
 *
 * A destination on this host is resolved at once.  A destination on another
 * host is resolved by cm/resolve.c, for which the wire must be on
 * (URXE_WIRE).
 */
#include <arpa/inet.h>

#include "cm/wire.h"
#include "command.h"

#define FLOW_MASK 0xfffff

static bool addr_is_link_local(const union cm_addr *a)
{
	return a->sa.sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr);
}

static bool addr_is_multicast(const union cm_addr *a)
{
	return a->sa.sa_family == AF_INET ?
		       IN_MULTICAST(ntohl(a->in.sin_addr.s_addr)) :
		       IN6_IS_ADDR_MULTICAST(&a->in6.sin6_addr);
}

/* RDMA_PS_IPOIB needs the address of an InfiniBand port. */
static bool addr_has_ps(const struct urxe_dev *dev, const struct cm_id *id,
			const union cm_addr *a)
{
	return id->ps != RDMA_PS_IPOIB ||
	       dev->hca[cm_addr_device(dev, id->host, a)].infiniband;
}

/*
 * Check that id may have source address @a: 0, -EINVAL, -ENODEV (no such GID,
 * or no such link-local address), or -EADDRNOTAVAIL (not an address of this
 * host).
 */
static int addr_check_source(struct ucma *u, const struct cm_id *id,
			     const union cm_addr *a)
{
	const struct urxe_dev *dev = u->cm.f->dev;

	if (cm_addr_any(dev, a))
		return 0;
	/* an address of another host, or of no device */
	if (dev->cluster && (!cm_addr_known(dev, a) ||
			     cm_addr_host(dev, id->host, a) != id->host))
		return ucma_is_local(u->cm.f, a) && !cm_addr_known(dev, a) ?
			       -ENODEV :
			       -EADDRNOTAVAIL;
	if (addr_is_link_local(a) && !a->in6.sin6_scope_id)
		return -EINVAL;
	if (a->sa.sa_family == CM_AF_IB)
		return cm_addr_known(dev, a) ? 0 : -ENODEV;
	if (!ucma_is_local(u->cm.f, a))
		return addr_is_link_local(a) ? -ENODEV : -EADDRNOTAVAIL;
	return addr_has_ps(dev, id, a) ? 0 : -EINVAL;
}

static int addr_bind(struct ucma *u, struct cm_id *id, const union cm_addr *a)
{
	int ret;

	if (!cm_addr_size(a))
		return -EAFNOSUPPORT;
	if (id->cma != CMA_IDLE)
		return -EINVAL;
	ret = addr_check_source(u, id, a);
	if (ret)
		return ret;
	id->src = *a;
	if (!(id->flags & CM_F_AFONLY_SET) && ucma_one_family(a))
		id->flags |= CM_F_AFONLY;
	ret = cm_port_bind(&u->cm, id, ucma_is_privileged());
	if (ret) {
		memset(&id->src, 0, sizeof(id->src));
		return ret;
	}
	memset(&id->dst, 0, sizeof(id->dst));
	id->dst.sa.sa_family = a->sa.sa_family;
	id->cma = CMA_ADDR_BOUND;
	if (!cm_addr_any(u->cm.f->dev, &id->src))
		cm_attach(&u->cm, id);
	return 0;
}

/*
 * Set *a to the wildcard address of @dst's family, with the scope ID of a
 * link-local @dst or the P_Key of an AF_IB one.
 */
static void addr_wildcard(const union cm_addr *dst, union cm_addr *a)
{
	memset(a, 0, sizeof(*a));
	a->sa.sa_family = dst->sa.sa_family;
	if (addr_is_link_local(dst))
		a->in6.sin6_scope_id = dst->in6.sin6_scope_id;
	if (dst->sa.sa_family == CM_AF_IB)
		a->ib.sib_pkey = dst->ib.sib_pkey;
}

bool ucma_take_addr(const void *from, union cm_addr *to)
{
	memset(to, 0, sizeof(*to));
	memcpy(&to->sa.sa_family, from, sizeof(to->sa.sa_family));
	memcpy(to, from, cm_addr_size(to));
	return cm_addr_size(to);
}

/*
 * Copy the address of an older command, whose field is a sockaddr_in6.
 * Return false if the family is AF_IB, which does not fit, or unknown.
 */
static bool addr_take_ip(const struct sockaddr_in6 *from, union cm_addr *to)
{
	return from->sin6_family != CM_AF_IB && ucma_take_addr(from, to);
}

static int addr_bind_number(struct ucma *u, uint32_t number,
			    const union cm_addr *a)
{
	int err;
	struct cm_id *id = ucma_id(u, number, &err);

	return id ? addr_bind(u, id, a) : err;
}

int ucma_bind_ip(struct ucma *u)
{
	const struct rdma_ucm_bind_ip *cmd = u->cmd;
	union cm_addr a;

	if (!addr_take_ip(&cmd->addr, &a))
		return -EINVAL;
	return addr_bind_number(u, cmd->id, &a);
}

int ucma_bind(struct ucma *u)
{
	const struct rdma_ucm_bind *cmd = u->cmd;
	union cm_addr a;

	if (cmd->reserved || !ucma_take_addr(&cmd->addr, &a) ||
	    cmd->addr_size != cm_addr_size(&a))
		return -EINVAL;
	return addr_bind_number(u, cmd->id, &a);
}

int ucma_listen(struct ucma *u)
{
	const union cm_addr any = { .in = { .sin_family = AF_INET } };
	const struct rdma_ucm_listen *cmd = u->cmd;
	int err = 0;

	if (u->id->cma != CMA_ADDR_BOUND)
		err = addr_bind(u, u->id, &any);
	if (!err)
		err = cm_listen(&u->cm, u->id, cmd->backlog);
	if (!err)
		ucma_note_listen();
	return err;
}

static int addr_resolve_loopback(struct ucma *u, struct cm_id *id)
{
	if (!(id->flags & CM_F_DEVICE))
		cm_addr_set_loopback(&id->src);
	return cm_resolved(&u->cm, id);
}

/*
 * Check that id->dst, an address of another host, can be reached from the
 * address of the wire, and set id->path_mtu.  -ETIMEDOUT, since no reply
 * could arrive: the wire is off, its address is of the other IP version or
 * not in the GID table, or id is bound to another address.
 */
static int addr_check_remote(struct ucma *u, struct cm_id *id)
{
	union cm_addr wire;
	uint8_t raw[2][16];

	if (!cm_wire_address(&wire))
		return -ETIMEDOUT;
	cm_addr_raw(&wire, raw[0]);
	cm_addr_raw(&id->src, raw[1]);
	if (wire.sa.sa_family != id->dst.sa.sa_family &&
	    id->dst.sa.sa_family != CM_AF_IB) {
		shim_why("rdma_resolve_addr: the destination has another IP "
			 "version than URXE_WIRE");
		return -ETIMEDOUT;
	}
	if (!cm_addr_any(u->cm.f->dev, &id->src) &&
	    memcmp(raw[0], raw[1], 16)) {
		shim_why("rdma_resolve_addr: the rdma_cm_id is not bound to "
			 "the address of URXE_WIRE");
		return -ETIMEDOUT;
	}
	if (!cm_addr_known(u->cm.f->dev, &wire))
		return -ETIMEDOUT;
	id->path_mtu = ucma_path_mtu(&id->dst);
	return 0;
}

static int addr_resolve_ib(struct ucma *u, struct cm_id *id)
{
	if (!cm_addr_known(u->cm.f->dev, &id->dst))
		return addr_check_remote(u, id) ?
			       -ENODEV :
			       cm_resolve_remote(&u->cm, id, 0);
	if (u->cm.f->dev->cluster) {
		if (cm_addr_any(u->cm.f->dev, &id->src) &&
		    !cm_addr_route(u->cm.f->dev, id->host, &id->dst, &id->src))
			return -ENODEV;
	} else if (cm_addr_any(u->cm.f->dev, &id->src)) {
		memcpy(id->src.ib.sib_addr, id->dst.ib.sib_addr, 16);
	}
	return cm_resolved(&u->cm, id);
}

/*
 * Set *src to the address from which packets to id->dst are sent.  The kernel
 * has a route to addresses of device 0 only; other devices send to their own
 * address from that.
 */
static int addr_from(const struct urxe_dev *dev, const struct cm_id *id,
		     union cm_addr *src)
{
	const uint16_t port = cm_addr_port(src);

	if (dev->cluster)
		return cm_addr_route(dev, id->host, &id->dst, src) ?
			       0 :
			       -ENETUNREACH;
	if (cm_addr_device(dev, 0, &id->dst)) {
		*src = id->dst;
		cm_addr_set_port(src, port);
		return 0;
	}
	return cm_addr_device(dev, 0, src) ? 0 : ucma_route(dev, &id->dst, src);
}

static int addr_resolve_inet(struct ucma *u, struct cm_id *id,
			     uint32_t timeout_ms)
{
	const struct urxe_dev *dev = u->cm.f->dev;
	union cm_addr src = id->src;
	bool remote;
	int ret, status = 0;

	ret = addr_from(dev, id, &src);
	if (ret)
		return ret;
	remote = !addr_is_multicast(&id->dst) &&
		 !(dev->cluster ? cm_addr_known(dev, &id->dst) :
				  ucma_is_local(u->cm.f, &id->dst));
	if (!addr_has_ps(dev, id, &src))
		status = -EINVAL;
	else if (remote)
		status = addr_check_remote(u, id);
	if (status)
		return cm_event_post(&u->cm, id, CM_EV_ADDR_ERROR, status);
	if (remote)
		return cm_resolve_remote(&u->cm, id, timeout_ms);
	if (cm_addr_any(u->cm.f->dev, &id->src))
		id->src = src;
	return cm_resolved(&u->cm, id);
}

static int addr_resolve(struct ucma *u, uint32_t number,
			const union cm_addr *src, const union cm_addr *dst,
			uint32_t timeout_ms)
{
	union cm_addr any;
	int ret;
	struct cm_id *id = ucma_id(u, number, &ret);

	if (!id)
		return ret;
	if (id->cma != CMA_ADDR_BOUND) {
		if (!src->sa.sa_family) {
			addr_wildcard(dst, &any);
			src = &any;
		}
		ret = addr_bind(u, id, src);
		if (ret)
			return ret;
	}
	if (id->src.sa.sa_family != dst->sa.sa_family)
		return -EINVAL;
	id->dst = *dst;
	if (cm_addr_any(u->cm.f->dev, dst))
		return addr_resolve_loopback(u, id);
	if (dst->sa.sa_family == CM_AF_IB)
		return addr_resolve_ib(u, id);
	return addr_resolve_inet(u, id, timeout_ms);
}

int ucma_resolve_ip(struct ucma *u)
{
	const struct rdma_ucm_resolve_ip *cmd = u->cmd;
	union cm_addr src, dst;

	if (!addr_take_ip(&cmd->dst_addr, &dst) ||
	    (!addr_take_ip(&cmd->src_addr, &src) && cmd->src_addr.sin6_family))
		return -EINVAL;
	return addr_resolve(u, cmd->id, &src, &dst, cmd->timeout_ms);
}

int ucma_resolve_addr(struct ucma *u)
{
	const struct rdma_ucm_resolve_addr *cmd = u->cmd;
	union cm_addr src, dst;

	ucma_take_addr(&cmd->src_addr, &src);
	if (cmd->reserved || !ucma_take_addr(&cmd->dst_addr, &dst) ||
	    cmd->dst_size != cm_addr_size(&dst) ||
	    (cmd->src_size && cmd->src_size != cm_addr_size(&src)))
		return -EINVAL;
	if (!cmd->src_size)
		src.sa.sa_family = AF_UNSPEC;
	return addr_resolve(u, cmd->id, &src, &dst, cmd->timeout_ms);
}

/*
 * Always fails: InfiniBand resolves services with the subnet administrator,
 * which RoCE lacks.
 */
int ucma_resolve_ib_service(struct ucma *u)
{
	return u->id->flags & CM_F_DEVICE && u->id->cma == CMA_ADDR_BOUND ?
		       -EOPNOTSUPP :
		       -EINVAL;
}

/*
 * Packet lifetime of the path, 4.096 us << n.  RoCE has no subnet
 * administrator that defines it, so it is derived from the local ACK timeout
 * of the id if that was set (RDMA_OPTION_ID_ACK_TIMEOUT).
 */
static uint8_t path_life_time(const struct cm_id *id)
{
	const uint8_t timeout = id->timeout & 31;

	return id->flags & CM_F_TIMEOUT_SET && timeout ? timeout - 1 :
							 CM_LIFE_TIME;
}

/*
 * Flow label of the path, from which RoCE derives the UDP source port.  It is
 * sin6_flowinfo of the source address, or else a hash of the two ports.
 */
static uint32_t path_flow_label(const struct cm_id *id)
{
	uint32_t flow = 0;

	if (id->src.sa.sa_family == AF_INET6)
		flow = ntohl(id->src.in6.sin6_flowinfo);
	if (!(flow & FLOW_MASK))
		flow = cm_addr_port(&id->src) * 31u + cm_addr_port(&id->dst);
	return flow & FLOW_MASK;
}

int ucma_route_resolved(struct ucma *u, uint8_t tos, uint32_t flow,
			uint8_t life)
{
	struct cm_id *id = u->id;
	int ret;

	if (id->cma != CMA_ADDR_RESOLVED)
		return -EINVAL;
	if (!cm_has_path(&u->cm, id))
		return cm_event_post(&u->cm, id, CM_EV_ROUTE_ERROR, -EINVAL);
	id->cma = CMA_ROUTE_QUERY;
	ret = cm_event_post(&u->cm, id, CM_EV_ROUTE_RESOLVED, 0);
	if (ret) {
		id->cma = CMA_ADDR_RESOLVED;
		return ret;
	}
	id->flags |= CM_F_PATH;
	id->path_tos = tos;
	id->path_flow = flow;
	id->path_life = life;
	return 0;
}

int ucma_resolve_route(struct ucma *u)
{
	return ucma_route_resolved(u, u->id->tos, path_flow_label(u->id),
				   path_life_time(u->id));
}
