// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address resolution (rdma_resolve_addr): binds an id to the device and finds
 * the GID of the peer.
 *
 * For a peer on another host, the Ethernet address of the next hop must be
 * known first, as in the kernel.  wire/neighbour.h makes the kernel query it
 * by ARP or NDP.  Meanwhile the id is in state CMA_ADDR_QUERY, and cm_tick()
 * of its process checks for the result after 1 ms, then after twice the time
 * each, up to CHECK_MAX_NS.  All functions run under the lock of the tables.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "fabric/profile.h"
#include "wire.h"
#include "wire/address.h"
#include "wire/neighbour.h"

#define MS 1000000ull
#define CHECK_MAX_NS (100 * MS) /* longest interval of checks */

/* Limit the path MTU to the MTU of a device. */
static void limit_mtu(struct cm_id *id, const struct urxe_hca *hca)
{
	const struct urxe_profile *p = &hca->profile;
	const uint8_t mtu = profile_mtu(p->value[PROFILE_active_mtu]);

	if (mtu < cm_path_mtu(id))
		id->path_mtu = mtu;
}

void cm_attach(struct cm *cm, struct cm_id *id)
{
	id->flags |= CM_F_DEVICE;
	id->device = (uint16_t)cm_addr_device(cm->f->dev, id->host, &id->src);
	id->sgid_index =
		(uint8_t)cm_addr_gid(cm->f->dev, id->host, &id->src, id->sgid);
	limit_mtu(id, cm_hca(cm, id));
}

/*
 * The GID of 127.0.0.1 may be a link-local one.  RoCE v2 then needs an IPv6
 * address of another device as well: use its link-local GID.
 */
static void gids_match(struct cm *cm, struct cm_id *id)
{
	if ((id->device || cm->f->dev->cluster) && wire_gid_is_ipv4(id->sgid) &&
	    !wire_gid_is_ipv4(id->dgid))
		id->sgid_index =
			(uint8_t)cm_default_gid(cm_hca(cm, id), id->sgid);
}

int cm_resolved(struct cm *cm, struct cm_id *id)
{
	int ret = cm_event_post(cm, id, CM_EV_ADDR_RESOLVED, 0), peer;

	if (ret)
		return ret;
	cm_attach(cm, id);
	if (cm_is_remote(id))
		cm_addr_raw(&id->dst, id->dgid);
	else
		cm_addr_gid(cm->f->dev, id->host, &id->dst, id->dgid);
	gids_match(cm, id);
	peer = fabric_gid_owner(cm->f->dev, id->dgid);
	if (peer >= 0)
		limit_mtu(id, &cm->f->dev->hca[peer]);
	id->cma = CMA_ADDR_RESOLVED;
	return 0;
}

/*
 * Send ADDR_RESOLVED for a peer on another host.  If the source address is a
 * wildcard or loopback, it becomes the wire's.  Return 0 or -ENOMEM, then @id
 * is unchanged.
 */
static int remote_resolved(struct cm *cm, struct cm_id *id,
			   const union cm_addr *wire)
{
	const union cm_addr src = id->src;
	int ret;

	if (cm_addr_any(cm->f->dev, &id->src) &&
	    id->src.sa.sa_family == CM_AF_IB) {
		cm_addr_raw(wire, id->src.ib.sib_addr);
	} else if (cm_addr_any(cm->f->dev, &id->src)) {
		id->src = *wire;
		cm_addr_set_port(&id->src, cm_addr_port(&src));
	}
	id->flags |= CM_F_WIRE;
	ret = cm_resolved(cm, id);
	if (!ret)
		return 0;
	id->src = src;
	id->flags &= ~(uint32_t)CM_F_WIRE;
	return ret;
}

/*
 * Return 0 if the next hop is known or need not be, -EINPROGRESS if it is
 * being queried, or -errno if there is no route.
 */
static int remote_find(const struct cm_id *id, const union cm_addr *wire)
{
	const uint32_t interface = id->dst.sa.sa_family == AF_INET6 ?
					   id->dst.in6.sin6_scope_id :
					   0;
	uint8_t from[16], to[16];

	/* as in the kernel: queried when a QP or AH is set up */
	if (id->dst.sa.sa_family == CM_AF_IB)
		return 0;
	cm_addr_raw(wire, from);
	cm_addr_raw(&id->dst, to);
	return neighbour_find(to, from, interface);
}

static void check_later(struct cm_id *id, uint64_t now)
{
	const uint64_t wait = id->tries < 7 ? MS << id->tries : CHECK_MAX_NS;

	id->next_check = now + wait;
	id->tries += id->tries < 7;
}

int cm_resolve_remote(struct cm *cm, struct cm_id *id, uint32_t timeout_ms)
{
	union cm_addr wire;
	uint64_t now;
	int err;

	if (!cm_wire_address(&wire))
		return -ENETUNREACH;
	err = remote_find(id, &wire);
	if (!err)
		return remote_resolved(cm, id, &wire);
	if (err != -EINPROGRESS)
		return err;
	now = clock_now();
	id->cma = CMA_ADDR_QUERY;
	id->deadline = now + timeout_ms * MS;
	id->tries = 0;
	check_later(id, now);
	cm->watch = true;
	event_count_ring(&cm->t->timers);
	return 0;
}

static void resolve_failed(struct cm *cm, struct cm_id *id, int err)
{
	id->cma = CMA_ADDR_BOUND;
	id->deadline = 0;
	cm_event_post(cm, id, CM_EV_ADDR_ERROR, err);
}

void cm_resolve_check(struct cm *cm, struct cm_id *id, uint64_t now)
{
	union cm_addr wire;
	int err;

	if (id->next_check > now && id->deadline > now)
		return;
	err = cm_wire_address(&wire) ? remote_find(id, &wire) : -ENETUNREACH;
	if (!err) {
		id->deadline = 0;
		/* -ENOMEM: try again */
		if (remote_resolved(cm, id, &wire))
			id->deadline = id->next_check = now + CHECK_MAX_NS;
		return;
	}
	if (err == -EINPROGRESS && id->deadline > now)
		check_later(id, now);
	else
		resolve_failed(cm, id, err == -EINPROGRESS ? -ETIMEDOUT : err);
}
