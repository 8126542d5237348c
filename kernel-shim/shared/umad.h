/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Management datagrams: the open umad devices with their agents.  Writers hold
 * dev.lock; readers take no lock, and check what they read.
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
