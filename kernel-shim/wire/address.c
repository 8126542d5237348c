// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "wire/address.h"
#include "wire/crc/crc32.h"
#include "wire/field.h"

bool wire_gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped)) ||
	       (gid[0] == 0xff && !memcmp(gid + 2, mapped + 2, 10));
}

bool wire_gid_is_group(const uint8_t gid[16])
{
	if (gid[0] == 0xff)
		return true;
	return wire_gid_is_ipv4(gid) && gid[12] >> 4 == 0xe;
}

/*
 * fe80::/64 with a modified EUI-64 that was made of a 48-bit MAC (RFC 4291)
 */
static bool is_of_mac(const uint8_t gid[16])
{
	return field_get(gid, 0, 64) == 0xfe80ull << 48 &&
	       field_get(gid, 88, 16) == 0xfffe;
}

#define LOCAL_MAC (0x02ull << 40) /* the bit "locally administered" */

uint64_t wire_mac(const uint8_t gid[16])
{
	bool group = wire_gid_is_group(gid);

	if (wire_gid_is_ipv4(gid))
		return group ? 0x01005eull << 24 | field_get(gid, 105, 23) :
			       LOCAL_MAC | field_get(gid, 96, 32);
	if (group)
		return 0x3333ull << 32 | field_get(gid, 96, 32);
	if (is_of_mac(gid))
		return (field_get(gid, 64, 24) << 24 |
			field_get(gid, 104, 24)) ^
		       LOCAL_MAC;
	return LOCAL_MAC | 6ull << 32 | wire_crc32(0, gid, 16);
}

/* first dynamic port: IB_ROCE_UDP_ENCAP_VALID_PORT_MIN of Linux */
#define FIRST_PORT 0xc000
#define PORT_BITS 14

/* rdma_calc_flow_label() and rdma_flow_label_to_udp_sport() of Linux */
uint16_t wire_port(uint32_t qpn, uint32_t peer)
{
	uint64_t v = (uint64_t)qpn * peer;
	uint32_t label;

	v ^= v >> 20;
	v ^= v >> 40;
	label = v & 0xfffff;
	return (uint16_t)(((label & 0x3fff) ^ label >> PORT_BITS) | FIRST_PORT);
}

/* hash_32(qpn, 14) of Linux, a multiplicative hash */
uint16_t wire_port_ud(uint32_t qpn)
{
	return (uint16_t)(FIRST_PORT + (qpn * 0x61c88647u >> (32 - PORT_BITS)));
}
