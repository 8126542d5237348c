/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The subnet as management datagrams see it: the InfiniBand devices and
 * switches of the fabric, and the links between their ports
 * (shared/cluster.h).
 */
#pragma once

#include "fabric/fabric.h"

static inline bool node_is_switch(uint32_t node)
{
	return node >= URXE_MAX_HCA;
}

/* The switch that is that node. */
static inline struct urxe_switch *node_switch(struct urxe_dev *dev,
					      uint32_t node)
{
	return &dev->sw[(node - URXE_MAX_HCA) % URXE_MAX_SWITCH];
}

bool node_exists(const struct urxe_dev *dev, uint32_t node);
uint32_t node_ports(const struct urxe_dev *dev, uint32_t node);
uint64_t node_guid(const struct urxe_dev *dev, uint32_t node);
/* The port that has a LID: port 1 of a device, port 0 of a switch. */
struct urxe_subnet *node_subnet(struct urxe_dev *dev, uint32_t node);
/* The node whose port has that LID, or -1. */
int node_of_lid(struct urxe_dev *dev, uint16_t lid);
/* The highest LID of a port; 0: none has one. */
uint32_t lid_top(struct urxe_dev *dev);
/* The device at the other end of the link of a port, or -1. */
int port_device(const struct urxe_dev *dev, uint32_t node, uint32_t port);
/* Is that port of the node connected, and the link not down? */
bool port_has_link(const struct urxe_dev *dev, uint32_t node, uint32_t port);
/*
 * Follow the link of a port.  False: it has none.  The other end of a link is
 * returned in *node and *port.
 */
bool port_cross(const struct urxe_dev *dev, uint32_t *node, uint32_t *port);
/* The state of a port, a value of enum ibv_port_state. */
uint32_t port_state_of(const struct urxe_dev *dev, uint32_t node,
		       uint32_t port);
/*
 * The links from a node to each switch; distances_from() fills it.  UINT8_MAX:
 * no links that are up lead there.
 */
struct distances {
	uint8_t to[URXE_MAX_SWITCH];
};

void distances_from(const struct urxe_dev *dev, uint32_t node,
		    struct distances *d);
/* Do links lead from the node of distances_from() to a node? */
bool distances_reach(const struct urxe_dev *dev, const struct distances *d,
		     uint32_t node);
/* The port through which a switch sends packets to a LID; 255: none. */
uint8_t switch_route(struct urxe_dev *dev, uint32_t node, uint32_t lid);
/*
 * Follow the routes of switches from a device to a LID: *node and *port are
 * where a packet arrives.  False: it is lost on its way.
 */
bool route_follow(struct urxe_dev *dev, uint16_t lid, uint32_t *node,
		  uint32_t *port);
