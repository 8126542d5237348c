/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * InfiniBand transport headers (IB 9.2 and 9.3; FETH: annex A19): the base
 * transport header (BTH) of each packet, and extension headers, which depend
 * on the opcode (opcode.h).  field.h explains the format of the lists.
 */
#pragma once

#include "wire/field.h"

#define WIRE_BTH_BYTES 12
#define WIRE_ICRC_BYTES 4
#define WIRE_PSN_MASK 0xffffffu

#define WIRE_BTH(FIELD)                 \
	FIELD(uint8_t, opcode, 0, 8)    \
	FIELD(bool, solicited, 8, 1)    \
	FIELD(bool, migrated, 9, 1)     \
	FIELD(uint8_t, pad, 10, 2)      \
	FIELD(uint8_t, version, 12, 4)  \
	FIELD(uint16_t, pkey, 16, 16)   \
	FIELD(bool, fecn, 32, 1)        \
	FIELD(bool, becn, 33, 1)        \
	FIELD(uint32_t, qpn, 40, 24)    \
	FIELD(bool, ack_request, 64, 1) \
	FIELD(uint32_t, psn, 72, 24)

#define WIRE_DETH(FIELD)             \
	FIELD(uint32_t, qkey, 0, 32) \
	FIELD(uint32_t, qpn, 40, 24)

#define WIRE_XRCETH(FIELD) FIELD(uint32_t, srqn, 8, 24)

/* FLUSH: selectivity level (memory range or MR) and placement type */
#define WIRE_FETH(FIELD)             \
	FIELD(uint8_t, level, 26, 2) \
	FIELD(uint8_t, type, 28, 4)

#define WIRE_RETH(FIELD)              \
	FIELD(uint64_t, addr, 0, 64)  \
	FIELD(uint32_t, rkey, 64, 32) \
	FIELD(uint32_t, length, 96, 32)

/* swap_add: swap value, or add value of FETCH & ADD, which has no compare */
#define WIRE_ATOMICETH(FIELD)             \
	FIELD(uint64_t, addr, 0, 64)      \
	FIELD(uint32_t, rkey, 64, 32)     \
	FIELD(uint64_t, swap_add, 96, 64) \
	FIELD(uint64_t, compare, 160, 64)

#define WIRE_AETH(FIELD)               \
	FIELD(uint8_t, syndrome, 0, 8) \
	FIELD(uint32_t, msn, 8, 24)

#define WIRE_ATOMICACK(FIELD) FIELD(uint64_t, original, 0, 64)
#define WIRE_IMMDT(FIELD) FIELD(uint32_t, imm, 0, 32)
#define WIRE_IETH(FIELD) FIELD(uint32_t, rkey, 0, 32)

/* Reserved bytes of a congestion notification packet, 0 */
#define WIRE_CNP(FIELD)                      \
	FIELD(uint64_t, reserved_high, 0, 64) \
	FIELD(uint64_t, reserved_low, 64, 64)

/* The extension headers, HEADER(name, NAME, bytes), in packet order */
#define WIRE_EXTENSIONS(HEADER)          \
	HEADER(deth, DETH, 8)            \
	HEADER(xrceth, XRCETH, 4)        \
	HEADER(feth, FETH, 4)            \
	HEADER(reth, RETH, 16)           \
	HEADER(atomiceth, ATOMICETH, 28) \
	HEADER(aeth, AETH, 4)            \
	HEADER(atomicack, ATOMICACK, 8)  \
	HEADER(immdt, IMMDT, 4)          \
	HEADER(ieth, IETH, 4)            \
	HEADER(cnp, CNP, 16)

WIRE_HEADER(bth, WIRE_BTH, WIRE_BTH_BYTES)
#define HEADER(name, NAME, bytes) WIRE_HEADER(name, WIRE_##NAME, bytes)
WIRE_EXTENSIONS(HEADER)
#undef HEADER

/* AETH syndrome (IB 9.7.5.1): ACK with its credit count, RNR NAK, or NAK */
#define WIRE_ACK 0x1f /* invalid credit count: no flow control */
#define WIRE_RNR_NAK 0x20 /* | code of the RNR timer */
#define WIRE_NAK_SEQUENCE 0x60
#define WIRE_NAK_INVALID 0x61
#define WIRE_NAK_ACCESS 0x62
#define WIRE_NAK_OPERATION 0x63
