/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The subnet as management datagrams see it: a node for each InfiniBand device
 * of the fabric, with port 1, and a switch that joins them (struct
 * urxe_switch).  The number of a device's node is that of the device.
 */
#pragma once

#include "fabric/fabric.h"

#define NODE_SWITCH URXE_MAX_HCA
#define NODES (URXE_MAX_HCA + 1)

static inline bool node_is_switch(uint32_t node)
{
	return node == NODE_SWITCH;
}

bool node_exists(const struct urxe_dev *dev, uint32_t node);
uint32_t node_ports(uint32_t node);
uint64_t node_guid(const struct urxe_dev *dev, uint32_t node);
/* The port that has a LID: port 1 of a device, port 0 of the switch. */
struct urxe_subnet *node_subnet(struct urxe_dev *dev, uint32_t node);
/* The node whose port has that LID, or -1. */
int node_of_lid(struct urxe_dev *dev, uint16_t lid);
/* Is that port of the node connected, and the other end not down? */
bool port_has_link(const struct urxe_dev *dev, uint32_t node, uint32_t port);
/*
 * Follow the link of a port.  False: it has none.  The other end of a link is
 * returned in *node and *port.
 */
bool port_cross(const struct urxe_dev *dev, uint32_t *node, uint32_t *port);
/* The state of a port, a value of enum ibv_port_state. */
uint32_t port_state_of(const struct urxe_dev *dev, uint32_t node,
		       uint32_t port);
/* The port through which the switch sends packets to a LID; 255: none. */
uint8_t switch_route(struct urxe_dev *dev, uint32_t lid);
