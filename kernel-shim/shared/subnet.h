/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the subnet manager assigns to an InfiniBand port: its LIDs, the LID of
 * the subnet manager itself, and the P_Key table.  fabric/subnet.c writes it,
 * under dev.lock, and then increments gen, as a change of the rate does.  Any
 * thread reads it, without a lock.  A requester that has checked a path checks
 * it again after a change, which urxe_dev.path announces.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "limits.h"

struct urxe_subnet {
	_Atomic uint32_t lids; /* SUBNET_LIDS() */
	_Atomic uint32_t sm; /* LID of the subnet manager | SL << 16 */
	_Atomic uint32_t gen;
	/* bit 15: full member of the partition; 0: the entry is empty */
	_Atomic uint16_t pkey[URXE_MAX_PKEY];
};

/*
 * PortInfo:SubnetTimeOut, 4.096 us << n: the time that a MAD takes at most;
 * 18 is the default of OpenSM
 */
#define SUBNET_TIMEOUT 18

/* The default prefix of a subnet, fe80:: */
#define SUBNET_PREFIX 0xfe80000000000000ull

/* A full member of the default partition */
#define PKEY_DEFAULT 0xffffu
#define PKEY_FULL 0x8000u

/* IB 4.1.3: LIDs of ports, and from MLID_FIRST on of multicast groups */
#define LID_LAST 0xbfffu
#define MLID_FIRST 0xc000u
#define LID_PERMISSIVE 0xffffu
#define LMC_MAX 7u

/* The base LID, a multiple of 1 << LMC, and the LMC (IB 3.5.10) in one word. */
#define SUBNET_LIDS(lid, lmc) ((uint32_t)(lid) | (uint32_t)(lmc) << 16)

static inline uint16_t port_lid(const struct urxe_subnet *s)
{
	return (uint16_t)load_acquire(&s->lids);
}

static inline uint8_t port_lmc(const struct urxe_subnet *s)
{
	return load_acquire(&s->lids) >> 16 & LMC_MAX;
}

/* The LID of the port with these path bits, of which it has LMC bits. */
static inline uint16_t port_source_lid(const struct urxe_subnet *s,
				       uint32_t path_bits)
{
	const uint32_t lids = load_acquire(&s->lids);

	return (uint16_t)(lids |
			  (path_bits & ~(~0u << (lids >> 16 & LMC_MAX))));
}

static inline uint16_t port_sm_lid(const struct urxe_subnet *s)
{
	return (uint16_t)load_relaxed(&s->sm);
}

static inline uint8_t port_sm_sl(const struct urxe_subnet *s)
{
	return load_relaxed(&s->sm) >> 16 & 15;
}

/* Is that LID one of the 1 << LMC LIDs of the port? */
static inline bool port_has_lid(const struct urxe_subnet *s, uint16_t lid)
{
	const uint32_t lids = load_acquire(&s->lids);

	return lid && !((lid ^ lids) & 0xffff & ~0u << (lids >> 16 & LMC_MAX));
}

/* An entry of the P_Key table; 0 if it is empty. */
static inline uint16_t port_pkey(const struct urxe_subnet *s, uint32_t index)
{
	return index < URXE_MAX_PKEY ? load_relaxed(&s->pkey[index]) : 0;
}

/*
 * Do the P_Keys of two ends match (IB 10.9.3)?  They are of one partition, and
 * not both limited members.
 */
static inline bool pkeys_match(uint16_t a, uint16_t b)
{
	return a & ~PKEY_FULL && !((a ^ b) & ~PKEY_FULL) && (a | b) & PKEY_FULL;
}
