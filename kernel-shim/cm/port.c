// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Port spaces: ownership of ports, and lookup of listeners.
 *
 * Called under the lock of the tables, for the commands bind, resolve and
 * listen, and when a request is delivered.  There is no separate table of
 * ports: the ids with CM_F_PORT are searched.  An id whose channel has no
 * reader any more does not keep its port: its process has exited or closed
 * the channel.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/clock.h"
#include "cm.h"

#define PRIVILEGED 1024
#define PORT_RANGE "/proc/sys/net/ipv4/ip_local_port_range"

#define SID_PORT 0xffffull
#define SID_OF(ps) ((uint64_t)(ps) << 16)

uint64_t cm_service_id(const struct cm_id *id, const union cm_addr *a)
{
	if (a->sa.sa_family == CM_AF_IB)
		return be64toh(a->ib.sib_sid);
	return SID_OF(id->ps) | cm_addr_port(a);
}

/*
 * Return the port space that the service ID of an AF_IB source address names;
 * 0 if it names none that the id may use.  An id of RDMA_PS_IB may use all.
 */
static uint16_t ib_port_space(const struct cm_id *id)
{
	static const uint16_t spaces[] = { RDMA_PS_IB, RDMA_PS_TCP,
					   RDMA_PS_UDP };
	const struct cm_sockaddr_ib *ib = &id->src.ib;
	uint64_t mask = be64toh(ib->sib_sid_mask) & ~SID_PORT;
	uint64_t sid = be64toh(ib->sib_sid) & mask;
	unsigned int i;

	for (i = 0; i < 3; i++)
		if ((id->ps == RDMA_PS_IB || id->ps == spaces[i]) &&
		    sid == (SID_OF(spaces[i]) & mask))
			return spaces[i];
	return 0;
}

static uint16_t port_space(const struct cm_id *id)
{
	return id->src.sa.sa_family == CM_AF_IB ? ib_port_space(id) : id->ps;
}

static bool port_owned_by(const struct cm_id *o, uint32_t host, uint16_t ps,
			  uint16_t port)
{
	return o->flags & CM_F_PORT && o->bound_ps == ps && o->host == host &&
	       cm_addr_port(&o->src) == port;
}

/* Compare addresses; link-local ones are equal only on one interface. */
static bool addr_same_scope(const union cm_addr *a, const union cm_addr *b)
{
	return cm_addr_same(a, b) &&
	       (a->sa.sa_family != AF_INET6 ||
		!IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr) ||
		a->in6.sin6_scope_id == b->in6.sin6_scope_id);
}

/*
 * Return 0 if @id may be bound to a port that @o owns, or the error of bind.
 * @reuse: @id has CM_F_REUSE.
 */
static int port_conflict(const struct cm *cm, const struct cm_id *id,
			 const struct cm_id *o, bool reuse)
{
	if (reuse && o->flags & CM_F_REUSE)
		return 0;
	if (id->flags & o->flags & CM_F_AFONLY &&
	    id->src.sa.sa_family != o->src.sa.sa_family)
		return 0;
	if (cm_addr_any(cm->f->dev, &id->src) ||
	    cm_addr_any(cm->f->dev, &o->src))
		return -EADDRNOTAVAIL;
	return addr_same_scope(&id->src, &o->src) ? -EADDRINUSE : 0;
}

/* Return whether the channel of @o is alive; if not, its port is free. */
static bool id_alive(struct cm *cm, const struct cm_id *o)
{
	struct cm_chan *c = cm_chan_at(cm, o->chan);

	return c && cm_chan_alive(cm, c);
}

static int port_check(struct cm *cm, const struct cm_id *id, uint16_t ps,
		      uint16_t port, bool reuse)
{
	struct cm_id *o;
	int ret;

	cm_for_each_id(cm, o) {
		if (!port_owned_by(o, id->host, ps, port) || o == id)
			continue;
		ret = port_conflict(cm, id, o, reuse);
		if (ret && id_alive(cm, o))
			return ret;
	}
	return 0;
}

int cm_port_exclusive(struct cm *cm, struct cm_id *id)
{
	return port_check(cm, id, id->bound_ps, cm_addr_port(&id->src), false);
}

static bool port_is_bound(struct cm *cm, uint16_t ps, uint16_t port)
{
	const struct cm_id *o;

	cm_for_each_id(cm, o)
		if (port_owned_by(o, cm->f->host, ps, port))
			return true;
	return false;
}

/*
 * Read the range of ephemeral ports, which is that of TCP; use the kernel's
 * default if it cannot be read.
 */
static void port_range(uint32_t *low, uint32_t *high)
{
	char buf[32];

	file_read(AT_FDCWD, PORT_RANGE, buf, sizeof(buf));
	if (sscanf(buf, "%" SCNu32 " %" SCNu32, low, high) != 2 || !*low ||
	    *low > *high || *high > UINT16_MAX) {
		*low = 32768;
		*high = 60999;
	}
}

static uint16_t port_choose(struct cm *cm, uint16_t ps)
{
	uint32_t n, at, low, high, range;

	port_range(&low, &high);
	range = high - low + 1;
	if (getrandom(&at, sizeof(at), GRND_NONBLOCK) != sizeof(at))
		at = (uint32_t)clock_now();
	for (n = 0; n < range; n++) {
		uint16_t port = (uint16_t)(low + (at + n) % range);

		if (!port_is_bound(cm, ps, port))
			return port;
	}
	return 0;
}

static void port_take(struct cm *cm, struct cm_id *id, uint16_t ps,
		      uint16_t port)
{
	if (id->src.sa.sa_family == CM_AF_IB) {
		id->src.ib.sib_sid = htobe64(SID_OF(ps));
		id->src.ib.sib_sid_mask = ~0ull;
	}
	cm_addr_set_port(&id->src, port);
	id->bound_ps = ps;
	id->flags |= CM_F_PORT;
	id->order = ++cm->t->order;
}

int cm_port_bind(struct cm *cm, struct cm_id *id, bool privileged)
{
	uint16_t ps = port_space(id), port = cm_addr_port(&id->src);
	int ret;

	if (!ps)
		return -EPROTONOSUPPORT;
	if (!port) {
		port = port_choose(cm, ps);
		if (!port)
			return -EADDRNOTAVAIL;
	} else {
		if (port < PRIVILEGED && !privileged)
			return -EACCES;
		ret = port_check(cm, id, ps, port, id->flags & CM_F_REUSE);
		if (ret)
			return ret;
	}
	port_take(cm, id, ps, port);
	return 0;
}

/*
 * Return whether @l listens on the service ID to which @id connects, and its
 * channel is not marked dead.
 */
static bool listens_on_service(struct cm *cm, const struct cm_id *l,
			       const struct cm_id *id)
{
	const struct cm_chan *c;

	if (l->cma != CMA_LISTEN ||
	    cm_service_id(l, &l->src) != cm_service_id(id, &id->dst))
		return false;
	c = cm_chan_at(cm, l->chan);
	return c && c->state == CM_CHAN_LIVE;
}

/* The host that @id connects to. */
static uint32_t destination_host(const struct cm *cm, const struct cm_id *id)
{
	return cm_addr_host(cm->f->dev, id->host, &id->dst);
}

/* Return whether @l listens on the destination address of @id. */
static bool listens_on_addr(const struct cm *cm, const struct cm_id *l,
			    const struct cm_id *id)
{
	if (cm_addr_any(cm->f->dev, &l->src))
		return !(l->flags & CM_F_AFONLY) ||
		       l->src.sa.sa_family == id->dst.sa.sa_family;
	return cm_addr_same(&l->src, &id->dst);
}

struct cm_id *cm_port_listener(struct cm *cm, const struct cm_id *id)
{
	const uint32_t host = destination_host(cm, id);
	struct cm_id *l, *best = NULL;

	cm_for_each_id(cm, l)
		if (l->host == host && listens_on_service(cm, l, id) &&
		    listens_on_addr(cm, l, id) &&
		    (!best || best->order < l->order))
			best = l;
	return best;
}

bool cm_port_has_listener(struct cm *cm, const struct cm_id *id)
{
	const uint32_t host = destination_host(cm, id);
	const struct cm_id *l;

	cm_for_each_id(cm, l)
		if (l->host == host && listens_on_service(cm, l, id))
			return true;
	return false;
}
