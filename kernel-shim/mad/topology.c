// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <infiniband/verbs.h>

#include "topology.h"

bool node_exists(const struct urxe_dev *dev, uint32_t node)
{
	uint32_t k;

	if (!node_is_switch(node))
		return node < dev_hcas(dev) && dev->hca[node].infiniband;
	for (k = 0; k < dev_hcas(dev); k++)
		if (dev->hca[k].infiniband)
			return true;
	return false;
}

uint32_t node_ports(uint32_t node)
{
	return node_is_switch(node) ? URXE_SWITCH_PORTS : 1;
}

uint64_t node_guid(const struct urxe_dev *dev, uint32_t node)
{
	return node_is_switch(node) ? dev->ib_switch.guid :
				      dev->hca[node].node_guid;
}

struct urxe_subnet *node_subnet(struct urxe_dev *dev, uint32_t node)
{
	return node_is_switch(node) ? &dev->ib_switch.subnet :
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

static bool device_has_link(const struct urxe_dev *dev, uint32_t k)
{
	return node_exists(dev, k) &&
	       load_acquire(&dev->hca[k].port_state) != URXE_PORT_DOWN;
}

bool port_has_link(const struct urxe_dev *dev, uint32_t node, uint32_t port)
{
	if (node_is_switch(node))
		return port && port <= URXE_SWITCH_PORTS &&
		       device_has_link(dev, port - 1);
	return port == 1 && device_has_link(dev, node);
}

bool port_cross(const struct urxe_dev *dev, uint32_t *node, uint32_t *port)
{
	if (!port_has_link(dev, *node, *port))
		return false;
	if (node_is_switch(*node)) {
		*node = *port - 1;
		*port = 1;
	} else {
		*port = *node + 1;
		*node = NODE_SWITCH;
	}
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
	return load_acquire(&dev->ib_switch.state[port]);
}

uint8_t switch_route(struct urxe_dev *dev, uint32_t lid)
{
	int node;

	if (lid > LID_LAST)
		return 255;
	if (dev->sm_external)
		return dev->ib_switch
			.lft[lid / URXE_LFT_BLOCK][lid % URXE_LFT_BLOCK];
	node = node_of_lid(dev, (uint16_t)lid);
	if (node < 0)
		return 255;
	return node_is_switch((uint32_t)node) ? 0 : (uint8_t)(node + 1);
}
