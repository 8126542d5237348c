/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The hosts, switches and links of a fabric (fabric/cluster.c).  They are
 * constant after the fabric was created, except states and what subnet managers
 * write.
 *
 * A node is a device or a switch.  Node k < URXE_MAX_HCA is device k, whose
 * port is port 1; node URXE_MAX_HCA + s is switch s, with the ports 1 to
 * `ports`, and port 0 for management.
 */
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "limits.h"
#include "subnet.h"

#define NODE_SWITCH(s) (URXE_MAX_HCA + (s))
#define NODES (URXE_MAX_HCA + URXE_MAX_SWITCH)
#define NODE_NONE UINT16_MAX

/* The other end of a link. */
struct urxe_link_end {
	uint16_t node; /* NODE_NONE: nothing is connected */
	uint16_t port;
};

/* A host has the devices [first, first + hcas). */
struct urxe_host {
	char name[32];
	uint32_t first, hcas;
	/* number of publications of its sysfs tree */
	_Atomic uint32_t tree_made;
};

#define URXE_SWITCH_LID 64 /* of switch 0 if there are fewer devices */
#define URXE_LFT_BLOCK 64 /* LIDs in a block of the forwarding table */
#define URXE_LFT_BLOCKS ((LID_LAST + 1) / URXE_LFT_BLOCK)
#define URXE_MFT_BLOCK 32
#define URXE_MFT_BLOCKS (URXE_MAX_MCAST_GRP / URXE_MFT_BLOCK)
#define URXE_MFT_POSITIONS (URXE_SWITCH_PORTS / 16) /* 16 ports each */

/*
 * The state of a link has bits at each end, in urxe_hca.down and
 * urxe_switch.down.  The link is down if either has LINK_DOWN.  If either has
 * LINK_STARTING, it is up, but carries no packets yet.  LINK_DOWN_FIRST: it was
 * down when the fabric was created.
 */
#define LINK_DOWN 1u
#define LINK_DOWN_FIRST 2u
#define LINK_STARTING 8u

struct urxe_switch {
	char name[32];
	uint64_t guid; /* host order */
	uint32_t infiniband; /* 1: InfiniBand, 0: Ethernet */
	uint32_t ports; /* switch_ports() */
	struct urxe_link_end peer[URXE_SWITCH_PORTS + 1];
	_Atomic uint32_t down[URXE_SWITCH_PORTS + 1]; /* of links */
	struct urxe_subnet subnet; /* of its port 0 */
	_Atomic uint32_t state[URXE_SWITCH_PORTS + 1]; /* enum ibv_port_state */
	_Atomic uint32_t changed; /* SwitchInfo:PortStateChange */
	_Atomic uint32_t lft_top;
	/* tables that an external subnet manager has written; 0xff: no port */
	uint8_t lft[URXE_LFT_BLOCKS][URXE_LFT_BLOCK];
	uint16_t mft[URXE_MFT_POSITIONS][URXE_MFT_BLOCKS][URXE_MFT_BLOCK];
};

static inline uint32_t switch_ports(const struct urxe_switch *sw)
{
	const uint32_t n = sw->ports;

	return n <= URXE_SWITCH_PORTS ? n : URXE_SWITCH_PORTS;
}
