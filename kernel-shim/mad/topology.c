// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <infiniband/verbs.h>
#include <string.h>

#include "topology.h"

#define HOPS_MAX 64 /* of a packet, and of a directed route */
#define NO_ROUTE 255
#define FAR UINT8_MAX /* more hops than there are switches */

bool node_exists(const struct urxe_dev *dev, uint32_t node)
{
	if (!node_is_switch(node))
		return node < dev_hcas(dev) && dev->hca[node].infiniband;
	return node - URXE_MAX_HCA < dev_switches(dev) &&
	       dev->sw[node - URXE_MAX_HCA].infiniband;
}

uint32_t node_ports(const struct urxe_dev *dev, uint32_t node)
{
	return node_is_switch(node) ?
		       switch_ports(&dev->sw[(node - URXE_MAX_HCA) %
					     URXE_MAX_SWITCH]) :
		       1;
}

uint64_t node_guid(const struct urxe_dev *dev, uint32_t node)
{
	return node_is_switch(node) ?
		       dev->sw[(node - URXE_MAX_HCA) % URXE_MAX_SWITCH].guid :
		       dev->hca[node].node_guid;
}

struct urxe_subnet *node_subnet(struct urxe_dev *dev, uint32_t node)
{
	return node_is_switch(node) ? &node_switch(dev, node)->subnet :
				      &dev->hca[node].subnet;
}

int node_of_lid(struct urxe_dev *dev, uint16_t lid)
{
	uint32_t node;

	for (node = 0; node < NODES; node++)
		if (node_exists(dev, node) &&
		    port_has_lid(node_subnet(dev, node), lid))
			return (int)node;
	return -1;
}

uint32_t lid_top(struct urxe_dev *dev)
{
	const struct urxe_subnet *s;
	uint32_t node, last, top = 0;

	for (node = 0; node < NODES; node++) {
		if (!node_exists(dev, node))
			continue;
		s = node_subnet(dev, node);
		last = port_lid(s) + (1u << port_lmc(s)) - 1;
		if (port_lid(s) && last > top)
			top = last;
	}
	return top;
}

/* What is connected to a port; NULL: nothing. */
static const struct urxe_link_end *port_peer(const struct urxe_dev *dev,
					     uint32_t node, uint32_t port)
{
	const struct urxe_link_end *p;

	if (!node_exists(dev, node) || !port || port > node_ports(dev, node))
		return NULL;
	p = node_is_switch(node) ? &dev->sw[node - URXE_MAX_HCA].peer[port] :
				   &dev->hca[node].peer;
	return node_exists(dev, p->node) && p->port &&
			       p->port <= node_ports(dev, p->node) ?
		       p :
		       NULL;
}

int port_device(const struct urxe_dev *dev, uint32_t node, uint32_t port)
{
	const struct urxe_link_end *p = port_peer(dev, node, port);

	return p && !node_is_switch(p->node) ? p->node : -1;
}

static bool end_is_up(const struct urxe_dev *dev, uint32_t node, uint32_t port)
{
	return node_is_switch(node) ?
		       !(load_acquire(
				 &dev->sw[node - URXE_MAX_HCA].down[port]) &
			 LINK_DOWN) :
		       load_acquire(&dev->hca[node].port_state) !=
			       URXE_PORT_DOWN;
}

bool port_has_link(const struct urxe_dev *dev, uint32_t node, uint32_t port)
{
	const struct urxe_link_end *p = port_peer(dev, node, port);

	return p && end_is_up(dev, node, port) &&
	       end_is_up(dev, p->node, p->port);
}

bool port_cross(const struct urxe_dev *dev, uint32_t *node, uint32_t *port)
{
	const struct urxe_link_end *p = port_peer(dev, *node, *port);

	if (!p || !port_has_link(dev, *node, *port))
		return false;
	*node = p->node;
	*port = p->port;
	return true;
}

uint32_t port_state_of(const struct urxe_dev *dev, uint32_t node, uint32_t port)
{
	if (!node_is_switch(node))
		return load_acquire(&dev->hca[node].port_state);
	if (!port)
		return IBV_PORT_ACTIVE;
	if (!port_has_link(dev, node, port))
		return IBV_PORT_DOWN;
	return load_acquire(&dev->sw[node - URXE_MAX_HCA].state[port]);
}

/* ------------------------------------------------------- routes */

/* The number of links from each switch to switch `to`. */
static void distances(const struct urxe_dev *dev, uint32_t to,
		      uint8_t dist[URXE_MAX_SWITCH])
{
	uint8_t queue[URXE_MAX_SWITCH];
	uint32_t head = 0, tail = 1, s, other, port;

	memset(dist, FAR, URXE_MAX_SWITCH);
	dist[to] = 0;
	queue[0] = (uint8_t)to;
	while (head < tail) {
		s = queue[head++];
		for (port = 1; port <= switch_ports(&dev->sw[s]); port++) {
			other = (uint32_t)dev->sw[s].peer[port].node -
				URXE_MAX_HCA;
			if (other >= dev_switches(dev) || dist[other] != FAR ||
			    !port_has_link(dev, NODE_SWITCH(s), port))
				continue;
			dist[other] = (uint8_t)(dist[s] + 1);
			queue[tail++] = (uint8_t)other;
		}
	}
}
static_assert(URXE_MAX_SWITCH < FAR, "the distance of two switches");

/* The switch that a node is, or is connected to; -1: none. */
static int node_own_switch(const struct urxe_dev *dev, uint32_t node)
{
	uint32_t port = 1;

	if (!node_is_switch(node) && !port_cross(dev, &node, &port))
		return -1;
	return node_exists(dev, node) && node_is_switch(node) ?
		       (int)(node - URXE_MAX_HCA) :
		       -1;
}

void distances_from(const struct urxe_dev *dev, uint32_t node,
		    struct distances *d)
{
	const int s = node_own_switch(dev, node);

	memset(d->to, FAR, sizeof(d->to));
	if (s >= 0)
		distances(dev, (uint32_t)s, d->to);
}

bool distances_reach(const struct urxe_dev *dev, const struct distances *d,
		     uint32_t node)
{
	const int s = node_own_switch(dev, node);

	return s >= 0 && d->to[s] != FAR;
}

/*
 * The built-in subnet manager: one of the ports of switch s that are on a
 * shortest way to switch `to`, another one for each LID.
 */
static uint8_t route_choose(const struct urxe_dev *dev, uint32_t s, uint32_t to,
			    uint32_t lid)
{
	uint8_t dist[URXE_MAX_SWITCH], ports[URXE_SWITCH_PORTS];
	uint32_t port, other, n = 0;

	distances(dev, to, dist);
	for (port = 1; port <= switch_ports(&dev->sw[s]); port++) {
		other = (uint32_t)dev->sw[s].peer[port].node - URXE_MAX_HCA;
		if (other < dev_switches(dev) && dist[s] != FAR &&
		    dist[other] + 1 == dist[s] &&
		    port_has_link(dev, NODE_SWITCH(s), port))
			ports[n++] = (uint8_t)port;
	}
	return n ? ports[lid % n] : NO_ROUTE;
}

uint8_t switch_route(struct urxe_dev *dev, uint32_t node, uint32_t lid)
{
	const struct urxe_switch *sw = node_switch(dev, node);
	const struct urxe_link_end *p;
	int to;

	if (lid > LID_LAST)
		return NO_ROUTE;
	if (dev->sm_external)
		return sw->lft[lid / URXE_LFT_BLOCK][lid % URXE_LFT_BLOCK];
	to = node_of_lid(dev, (uint16_t)lid);
	if (to < 0)
		return NO_ROUTE;
	if ((uint32_t)to == node)
		return 0;
	if (node_is_switch((uint32_t)to))
		return route_choose(dev, node - URXE_MAX_HCA,
				    (uint32_t)to - URXE_MAX_HCA, lid);
	p = port_peer(dev, (uint32_t)to, 1);
	if (!p || !node_is_switch(p->node))
		return NO_ROUTE;
	if (p->node == node)
		return (uint8_t)p->port;
	return route_choose(dev, node - URXE_MAX_HCA,
			    (uint32_t)p->node - URXE_MAX_HCA, lid);
}

bool route_follow(struct urxe_dev *dev, uint16_t lid, uint32_t *node,
		  uint32_t *port)
{
	uint32_t hops, out = *port;

	for (hops = 0; hops < HOPS_MAX; hops++) {
		*port = out;
		if (!port_cross(dev, node, port))
			return false;
		if (port_has_lid(node_subnet(dev, *node), lid))
			return true;
		if (!node_is_switch(*node))
			return false;
		out = switch_route(dev, *node, lid);
	}
	return false;
}
