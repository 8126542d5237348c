/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Headers of Ethernet, IPv4, IPv6 (and the GRH of RoCE v1) and UDP, as RoCE
 * uses them: without VLAN tags, IP options and extension headers.  field.h
 * explains the format of the lists.
 */
#pragma once

#include "wire/field.h"

#define WIRE_ETHERNET_BYTES 14
#define WIRE_IPV4_BYTES 20
#define WIRE_IPV6_BYTES 40
#define WIRE_UDP_BYTES 8

#define WIRE_TYPE_IPV4 0x0800
#define WIRE_TYPE_IPV6 0x86dd
#define WIRE_TYPE_V1 0x8915
#define WIRE_PROTOCOL_UDP 17
#define WIRE_PROTOCOL_BTH 0x1b /* RoCE v1 */
#define WIRE_PORT 4791 /* UDP port of RoCE v2 */

#define WIRE_ETHERNET(FIELD)          \
	FIELD(uint64_t, to, 0, 48)    \
	FIELD(uint64_t, from, 48, 48) \
	FIELD(uint16_t, type, 96, 16)

#define WIRE_IPV4(FIELD)                    \
	FIELD(uint8_t, version, 0, 4)       \
	FIELD(uint8_t, words, 4, 4)         \
	FIELD(uint8_t, traffic_class, 8, 8) \
	FIELD(uint16_t, bytes, 16, 16)      \
	FIELD(uint16_t, id, 32, 16)         \
	FIELD(bool, dont_fragment, 49, 1)   \
	FIELD(uint8_t, hop_limit, 64, 8)    \
	FIELD(uint8_t, protocol, 72, 8)     \
	FIELD(uint16_t, checksum, 80, 16)   \
	FIELD(uint32_t, from, 96, 32)       \
	FIELD(uint32_t, to, 128, 32)

#define WIRE_IPV6(FIELD)                    \
	FIELD(uint8_t, version, 0, 4)       \
	FIELD(uint8_t, traffic_class, 4, 8) \
	FIELD(uint32_t, flow_label, 12, 20) \
	FIELD(uint16_t, bytes, 32, 16)      \
	FIELD(uint8_t, protocol, 48, 8)     \
	FIELD(uint8_t, hop_limit, 56, 8)    \
	FIELD(uint64_t, from_high, 64, 64)  \
	FIELD(uint64_t, from_low, 128, 64)  \
	FIELD(uint64_t, to_high, 192, 64)   \
	FIELD(uint64_t, to_low, 256, 64)

#define WIRE_UDP(FIELD)                \
	FIELD(uint16_t, from, 0, 16)   \
	FIELD(uint16_t, to, 16, 16)    \
	FIELD(uint16_t, bytes, 32, 16) \
	FIELD(uint16_t, checksum, 48, 16)

WIRE_HEADER(ethernet, WIRE_ETHERNET, WIRE_ETHERNET_BYTES)
WIRE_HEADER(ipv4, WIRE_IPV4, WIRE_IPV4_BYTES)
WIRE_HEADER(ipv6, WIRE_IPV6, WIRE_IPV6_BYTES)
WIRE_HEADER(udp, WIRE_UDP, WIRE_UDP_BYTES)
