// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The wire as an interposer: verbs and hooks, see wire.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "engine/core/log.h"
#include "wire/socket/groups.h"
#include "tx_fault.h"
#include "socket_owner.h"
#include "wire/socket/port.h"
#include "wire/requester/roce_requester.h"
#include "resolve.h"
#include "verbs/ah.h"
#include "verbs/context.h"
#include "verbs/qp.h"
#include "cm/wire.h"
#include "wire.h"
#include "wire/socket.h"

/* ------------------------------------------------------- switched on */

/* URXE_WIRE; read once. */
static struct {
	pthread_once_t once;
	uint8_t address[16];
	bool on;
	const char *refused;
} setting = { .once = PTHREAD_ONCE_INIT, .refused = "" };

static void wire_read(void)
{
	const char *text = getenv("URXE_WIRE");

	if (!text || !*text)
		return;
	setting.on = inet_pton(AF_INET6, text, setting.address) == 1;
	if (setting.on)
		return;
	memset(setting.address, 0, sizeof(setting.address));
	setting.address[10] = setting.address[11] = 0xff;
	setting.on = inet_pton(AF_INET, text, setting.address + 12) == 1;
	if (!setting.on)
		setting.refused = "not an IPv4 or IPv6 address";
}

const uint8_t *wire_address(void)
{
	pthread_once(&setting.once, wire_read);
	return setting.on ? setting.address : NULL;
}

const char *wire_why(void)
{
	pthread_once(&setting.once, wire_read);
	return setting.refused;
}

/* ------------------------------------------------------- contexts */

void wire_opened(struct urxe_context *ctx)
{
	const uint32_t hcas = dev_hcas(ctx->fabric->dev);

	ctx->has_wire = wire_address() && hcas == 1 && !ctx->hca->infiniband;
	if (wire_address() && !ctx->has_wire)
		urxe_complain(
			"the wire is off: URXE_WIRE needs a fabric with one Ethernet device, and this one has %u %s device%s",
			hcas, hca_link_layer(ctx->hca), plural(hcas));
	ctx->wire_is_ipv4 = gid_is_ipv4(setting.address);
	if (ctx->has_wire)
		socket_owner_start(ctx, setting.address);
}

void wire_closing(struct urxe_context *ctx)
{
	if (ctx->has_wire)
		cm_ended_linger(ctx->fabric); /* the socket gets the answers */
	socket_owner_stop(ctx);
}

void wire_after_fork(struct urxe_context *ctx)
{
	socket_owner_after_fork(ctx);
	port_after_fork();
}

/* ------------------------------------------------------- QPs */

static struct pabi_ops next;

/*
 * Reserve memory for the QP's entry in arena.wire[], and clear its responder
 * state.  No socket owner accesses the entry yet.  A further handle of an XRC
 * target uses the entry that its creator reserved, or fails with -ENOMEM if
 * there is none.
 */
static int wire_reserve(struct urxe_qp *qp)
{
	const struct urxe_peer *opened =
		container_of(qp, struct urxe_vqp, qp)->opened;
	struct urxe_arena *a = opened ? opened->arena : qp->ctx->arena;
	struct urxe_wire_qp *e = &a->wire[qpn_index(qp->qpn)];
	int ret = 0;

	if (!opened)
		ret = arena_reserve(qp->ctx->cmd_fd, (char *)e - (char *)a,
				    sizeof(*e));
	else if (!load_acquire(&qp->sh->wire))
		ret = -ENOMEM;
	if (ret)
		return ret;
	memset(&e->responder, 0, sizeof(e->responder));
	store_relaxed(&e->inbox.ack_owner, 0);
	store_release(&qp->sh->wire, 1);
	return 0;
}

static struct ibv_qp *wire_created(struct ibv_qp *ibqp)
{
	struct urxe_qp *qp;

	if (!ibqp)
		return NULL;
	qp = to_uqp(ibqp);
	if (qp->type != IBV_QPT_UD && qp->type != IBV_QPT_XRC_RECV)
		return ibqp;
	if (wire_reserve(qp))
		urxe_note("QP 0x%x cannot receive from other hosts: no memory",
			  qp->qpn);
	/* XRC target: other processes may open and connect it */
	if (qp->type != IBV_QPT_UD)
		return ibqp;
	urxe_lock(&qp->lock);
	datagram_attach(qp);
	urxe_unlock(&qp->lock);
	return ibqp;
}

static struct ibv_qp *wire_create_qp(struct ibv_pd *pd,
				     struct ibv_qp_init_attr *init)
{
	return wire_created(next.create_qp(pd, init));
}

static struct ibv_qp *wire_create_qp_ex(struct ibv_context *ctx,
					struct ibv_qp_init_attr_ex *attr)
{
	return wire_created(next.create_qp_ex(ctx, attr));
}

/*
 * Return true if the modify connects the QP with another host.  A QP that is
 * already connected keeps its transport.
 */
static bool modify_is_remote(const struct urxe_qp *qp,
			     const struct ibv_qp_attr *a, int mask)
{
	const struct ibv_global_route *g = &a->ah_attr.grh;

	return mask & IBV_QP_STATE && a->qp_state == IBV_QPS_RTR &&
	       mask & IBV_QP_AV && a->ah_attr.is_global &&
	       gid_roce(qp->ctx->hca, g->sgid_index) == URXE_ROCE_V2 &&
	       qp->type != IBV_QPT_UD && qp_state(qp) == IBV_QPS_INIT &&
	       qp->ctx->has_wire &&
	       !ah_gid_is_ours(qp->ctx->fabric->dev, g->dgid.raw);
}

static int wire_leave(struct urxe_qp *qp, struct wire_requester **r)
{
	int ret = wire_reserve(qp);

	*r = NULL;
	if (ret || !qp->scq)
		return -ret;
	*r = requester_new(qp);
	return *r ? 0 : ENOMEM;
}

static struct wire_requester *requester_replace(struct urxe_qp *qp,
						struct wire_requester *r)
{
	struct wire_requester *old;

	urxe_lock(&qp->lock);
	old = requester_detach(qp);
	if (r)
		requester_attach(qp, r);
	urxe_unlock(&qp->lock);
	return old;
}

static int wire_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
			  int mask)
{
	struct urxe_qp *qp = to_uqp(ibqp);
	struct wire_requester *r = NULL;
	bool away = modify_is_remote(qp, attr, mask);
	int ret = 0;

	if (away)
		ret = resolve_neighbour(qp->ctx, &attr->ah_attr,
					"ibv_modify_qp");
	if (ret)
		return ret;
	if (away)
		ret = wire_leave(qp, &r);
	if (ret) {
		urxe_why(
			"ibv_modify_qp: QP 0x%x: no memory to connect to another host",
			qp->qpn);
		return ret;
	}
	if (mask & IBV_QP_STATE &&
	    (attr->qp_state == IBV_QPS_ERR || attr->qp_state == IBV_QPS_RESET))
		settle(qp);
	ret = next.modify_qp(ibqp, attr, mask);
	if (!ret && mask & IBV_QP_STATE &&
	    (away || attr->qp_state == IBV_QPS_RESET))
		r = requester_replace(qp, r);
	requester_free(r);
	return ret;
}

static int wire_destroy_qp(struct ibv_qp *ibqp)
{
	struct wire_requester *r = to_uqp(ibqp)->wire;
	int ret;

	settle(to_uqp(ibqp));
	ret = next.destroy_qp(ibqp);

	if (!ret)
		requester_free(r);
	return ret;
}

static struct ibv_ah *wire_create_ah(struct ibv_pd *pd,
				     struct ibv_ah_attr *attr)
{
	int ret = resolve_neighbour(to_uctx(pd->context), attr,
				    "ibv_create_ah");

	if (!ret)
		return next.create_ah(pd, attr);
	errno = ret;
	return NULL;
}

/* ------------------------------------------------------- multicast */

/* Attach, and wait until packets of the group are received. */
static int wire_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid,
			     uint16_t lid)
{
	int ret = next.attach_mcast(ibqp, gid, lid);

	if (!ret && to_uqp(ibqp)->ctx->has_wire)
		groups_await(to_uqp(ibqp)->ctx->fabric, setting.address);
	return ret;
}

static int wire_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid,
			     uint16_t lid)
{
	int ret = next.detach_mcast(ibqp, gid, lid);

	if (!ret && to_uqp(ibqp)->ctx->has_wire)
		groups_ring(to_uqp(ibqp)->ctx->fabric, setting.address);
	return ret;
}

/* ------------------------------------------------------- the port */

/*
 * Report the MTU of the wire's interface: programs use active_mtu as the path
 * MTU, and longer packets would not arrive.
 */
static int wire_query_port(struct ibv_context *ctx, uint8_t port,
			   struct ibv_port_attr *attr)
{
	int ret = next.query_port(ctx, port, attr);
	const bool on_wire = !ret && to_uctx(ctx)->has_wire;
	uint8_t mtu = on_wire ? wire_active_mtu(setting.address) : 0;

	if (mtu && mtu < attr->active_mtu)
		attr->active_mtu = mtu;
	return ret;
}

void wire_wrap(struct pabi_ops *ops)
{
	tx_fault_begin();
	next = *ops;
	ops->query_port = wire_query_port;
	ops->create_ah = wire_create_ah;
	ops->attach_mcast = wire_attach_mcast;
	ops->detach_mcast = wire_detach_mcast;
	ops->create_qp = wire_create_qp;
	ops->create_qp_ex = wire_create_qp_ex;
	ops->modify_qp = wire_modify_qp;
	ops->destroy_qp = wire_destroy_qp;
}
