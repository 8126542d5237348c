// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "wire/icrc.h"
#include "wire/network.h"
#include "wire/transport.h"

/* The remainders of 4 bits, by the reflected polynomial 0xedb88320 */
static const uint32_t table[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
	0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
	0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

uint32_t wire_crc32(uint32_t crc, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (crc = ~crc; n--; p++) {
		crc = table[(crc ^ *p) & 15] ^ crc >> 4;
		crc = table[(crc ^ *p >> 4) & 15] ^ crc >> 4;
	}
	return ~crc;
}

/* InfiniBand's local route header, which RoCE has not */
#define NO_LRH 8

static bool is_ipv4(const uint8_t *ip)
{
	return ip[0] >> 4 == 4;
}

static void ip_mask(uint8_t *ip)
{
	if (is_ipv4(ip)) {
		ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
	} else {
		ip[0] |= 0x0f;
		ip[1] = ip[2] = ip[3] = ip[7] = 0xff;
	}
}

uint32_t wire_icrc(const uint8_t *ip, size_t n)
{
	uint8_t head[NO_LRH + WIRE_IPV6_BYTES + WIRE_UDP_BYTES +
		     WIRE_BTH_BYTES];
	size_t bth = is_ipv4(ip) ? WIRE_IPV4_BYTES : WIRE_IPV6_BYTES;
	bool udp = is_ipv4(ip) || ip[6] != WIRE_PROTOCOL_BTH;

	bth += udp ? WIRE_UDP_BYTES : 0;
	memset(head, 0xff, NO_LRH);
	memcpy(head + NO_LRH, ip, bth + WIRE_BTH_BYTES);
	ip_mask(head + NO_LRH);
	if (udp) /* its checksum */
		head[NO_LRH + bth - 1] = head[NO_LRH + bth - 2] = 0xff;
	head[NO_LRH + bth + 4] = 0xff; /* FECN, BECN, reserved */
	bth += WIRE_BTH_BYTES;
	return wire_crc32(wire_crc32(0, head, NO_LRH + bth), ip + bth, n - bth);
}
