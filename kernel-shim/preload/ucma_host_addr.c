// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Addresses decide who has an id.  Until one does, the id is bound to the
 * same port in both, and listens in both.
 */
#include <arpa/inet.h>

#include "ucma_host.h"

#define TRIES 8 /* to find a port that is free in both */

/* The address in a command; false if the command will not do. */
static bool get_addr(const struct ucma *u, size_t at, union cm_addr *a)
{
	memset(a, 0, sizeof(*a));
	if (u->in_len < at + sizeof(a->sa.sa_family))
		return false;
	memcpy(&a->sa.sa_family, u->in + at, sizeof(a->sa.sa_family));
	if (!cm_addr_size(a) || u->in_len < at + cm_addr_size(a))
		return false;
	memcpy(a, u->in + at, cm_addr_size(a));
	return true;
}

/* An address that is none of this machine's. */
static bool far(struct ucma *u, const union cm_addr *a)
{
	if (cm_addr_any(a))
		return false;
	shim_refresh_gids(u->cm.f);
	return !ucma_is_local(u->cm.f, a);
}

/* Groups are joined here: nobody can tell whose they would be. */
static bool multicast(const union cm_addr *a)
{
	switch (a->sa.sa_family) {
	case AF_INET:
		return IN_MULTICAST(ntohl(a->in.sin_addr.s_addr));
	case AF_INET6:
		return IN6_IS_ADDR_MULTICAST(&a->in6.sin6_addr);
	default:
		return a->ib.sib_addr[0] == 0xff;
	}
}

/* Somebody else at the host has the port: not to be passed over. */
static bool conflict(int ret)
{
	return ret == -EADDRINUSE || ret == -EADDRNOTAVAIL || ret == -EACCES;
}

static void unbind(struct ucma *u, const struct host_id *h)
{
	struct cm_id *id;

	cm_lock(&u->cm);
	id = host_by_key(&u->cm, h->key);
	if (id && id->cma == CMA_ADDR_BOUND) {
		id->cma = CMA_IDLE;
		id->flags &= ~(uint32_t)(CM_F_PORT | CM_F_DEVICE);
		memset(&id->src, 0, sizeof(id->src));
	}
	cm_unlock(&u->cm);
}

/* As our id is bound by now, the port included. */
static int bind_there(struct ucma *u, uint32_t cmd, size_t at,
		      const struct host_id *h)
{
	union cm_addr src = { 0 };
	char in[HOST_COMMAND_MAX];
	struct ucma sub = *u;
	struct cm_id *id;

	if (u->in_len > sizeof(in))
		return -EINVAL;
	memcpy(in, u->in, u->in_len);
	cm_lock(&u->cm);
	id = host_by_key(&u->cm, h->key);
	if (id)
		src = id->src;
	cm_unlock(&u->cm);
	if (at + cm_addr_size(&src) > u->in_len)
		return -EINVAL;
	memcpy(in + at, &src, cm_addr_size(&src));
	sub.in = in;
	return host_forward(&sub, cmd, h);
}

static int bind_both(struct ucma *u, uint32_t cmd, size_t at, bool any_port,
		     const struct host_id *h)
{
	int i, ret, here;

	for (i = 0;; i++) {
		here = ucma_run(u, cmd);
		if (here)
			return here;
		ret = bind_there(u, cmd, at, h);
		if (!conflict(ret))
			break;
		unbind(u, h);
		if (!any_port || i == TRIES)
			return ret;
	}
	/* nothing of the host's has this address */
	if (ret)
		host_drop(u, h);
	return 0;
}

int host_bind(struct ucma *u, uint32_t cmd)
{
	const size_t at = cmd == RDMA_USER_CM_CMD_BIND ?
				  offsetof(struct rdma_ucm_bind, addr) :
				  offsetof(struct rdma_ucm_bind_ip, addr);
	struct host_id h;
	union cm_addr a;
	int ret;

	host_find(u, host_number(u, cmd), &h);
	if (!h.there || !get_addr(u, at, &a))
		return ucma_run(u, cmd);
	if (!h.chosen && !far(u, &a))
		return bind_both(u, cmd, at, !cm_addr_port(&a), &h);
	ret = host_forward(u, cmd, &h);
	if (!ret)
		host_choose(u, &h, true);
	return ret;
}

/* To listen without having bound is to bind to any port. */
static int bind_any(struct ucma *u, uint32_t number)
{
	struct rdma_ucm_bind_ip cmd = {
		.addr = { .sin6_family = AF_INET },
		.id = number,
	};
	struct ucma sub = *u;

	sub.in = (const char *)&cmd;
	sub.in_len = sizeof(cmd);
	return host_bind(&sub, RDMA_USER_CM_CMD_BIND_IP);
}

int host_listen(struct ucma *u)
{
	const uint32_t cmd = RDMA_USER_CM_CMD_LISTEN;
	const uint32_t number = host_number(u, cmd);
	struct host_id h;
	int ret;

	host_find(u, number, &h);
	if (h.there && !h.chosen && !h.bound) {
		ret = bind_any(u, number);
		if (ret)
			return ret;
		host_find(u, number, &h);
	}
	if (!h.there)
		return ucma_run(u, cmd);
	ret = host_forward(u, cmd, &h);
	if (h.chosen || conflict(ret))
		return ret;
	if (ret)
		host_drop(u, &h);
	return ucma_run(u, cmd);
}

int host_resolve(struct ucma *u, uint32_t cmd)
{
	const size_t at =
		cmd == RDMA_USER_CM_CMD_RESOLVE_ADDR ?
			offsetof(struct rdma_ucm_resolve_addr, dst_addr) :
			offsetof(struct rdma_ucm_resolve_ip, dst_addr);
	union cm_addr dst;
	struct host_id h;
	int ret;

	host_find(u, host_number(u, cmd), &h);
	if (!h.there || !get_addr(u, at, &dst))
		return ucma_run(u, cmd);
	if (h.chosen)
		return host_forward(u, cmd, &h);
	if (multicast(&dst) || !far(u, &dst)) {
		ret = ucma_run(u, cmd);
		if (!ret)
			host_drop(u, &h);
		return ret;
	}
	/* the event may come before the host has said that all is well */
	host_choose(u, &h, true);
	ret = host_forward(u, cmd, &h);
	if (ret)
		host_choose(u, &h, false);
	return ret;
}
