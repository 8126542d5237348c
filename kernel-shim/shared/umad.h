/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Management datagrams: the open umad devices with their agents, and the
 * switch that joins the InfiniBand ports of a fabric.  Writers hold dev.lock;
 * readers take no lock, and check what they read.
 */
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "limits.h"
#include "subnet.h"

#define URXE_MAX_UMAD 64 /* open umad devices of a fabric */
#define URXE_UMAD_AGENTS 32 /* of each, as in the kernel */
#define URXE_UMAD_PENDING 512 /* requests of each without an answer */

/* An agent: MADs that a program has registered for, or sends. */
struct urxe_mad_agent {
	_Atomic uint32_t used; /* stored last */
	uint8_t qpn; /* 0 or 1 */
	uint8_t mgmt_class, class_version; /* class 0: it only sends */
	uint8_t rmpp_version;
	uint8_t oui[3]; /* of the vendor classes 0x30 to 0x4f */
	uint64_t method_mask[2]; /* requests that it receives */
};

/*
 * An open umad device.  Its descriptors are those of a FIFO, mad.d/INDEX.GEN,
 * to which other processes write the MADs for its agents.  The entry is free
 * if no process has the FIFO open any more.
 */
struct urxe_umad {
	_Atomic uint32_t used;
	uint32_t gen; /* number of uses of the entry */
	uint64_t ino; /* of the FIFO */
	uint32_t device; /* its port is port 1 of this device */
	uint32_t use_pkey; /* 1: the long header, with pkey_index */
	_Atomic uint32_t spools; /* number of long MADs written for it */
	struct urxe_mad_agent agent[URXE_UMAD_AGENTS];
	/*
	 * TIDs of requests without an answer; 0: a free slot.  The process
	 * that changes a TID to 0, by compare-and-swap, ends the request: that
	 * of the sender of the response, which then delivers it, or that of
	 * the requester, which then reports a timeout.
	 */
	_Atomic uint64_t pending[URXE_UMAD_PENDING];
};

/* The ports of the switch; port k + 1 is that of device k, 0 its own. */
#define URXE_SWITCH_PORTS URXE_MAX_HCA
#define URXE_SWITCH_LID 64 /* if the subnet manager is the built-in one */
#define URXE_LFT_BLOCK 64 /* LIDs in a block of the forwarding table */
#define URXE_LFT_BLOCKS ((LID_LAST + 1) / URXE_LFT_BLOCK)
#define URXE_MFT_BLOCK 32
#define URXE_MFT_BLOCKS (URXE_MAX_MCAST_GRP / URXE_MFT_BLOCK)

struct urxe_switch {
	uint64_t guid; /* host order */
	struct urxe_subnet subnet; /* of its port 0 */
	_Atomic uint32_t state[URXE_SWITCH_PORTS + 1]; /* enum ibv_port_state */
	_Atomic uint32_t changed; /* SwitchInfo:PortStateChange */
	_Atomic uint32_t lft_top;
	/* tables that an external subnet manager has written; 0xff: no port */
	uint8_t lft[URXE_LFT_BLOCKS][URXE_LFT_BLOCK];
	uint16_t mft[URXE_MFT_BLOCKS][URXE_MFT_BLOCK];
};
