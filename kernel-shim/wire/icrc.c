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

static size_t ip_mask(uint8_t *ip)
{
	bool v4 = ip[0] >> 4 == 4;

	if (v4) {
		ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
		return WIRE_IPV4_BYTES;
	}
	ip[0] |= 0x0f;
	ip[1] = ip[2] = ip[3] = ip[7] = 0xff;
	return WIRE_IPV6_BYTES;
}

uint32_t wire_icrc(const uint8_t *ip, size_t n)
{
	uint8_t head[NO_LRH + WIRE_IPV6_BYTES + WIRE_UDP_BYTES +
		     WIRE_BTH_BYTES];
	size_t at,
		ip_bytes = ip[0] >> 4 == 4 ? WIRE_IPV4_BYTES : WIRE_IPV6_BYTES;
	size_t copied = ip_bytes + WIRE_UDP_BYTES + WIRE_BTH_BYTES;

	memset(head, 0xff, NO_LRH);
	memcpy(head + NO_LRH, ip, copied);
	at = NO_LRH + ip_mask(head + NO_LRH);
	head[at + 6] = head[at + 7] = 0xff; /* UDP's checksum */
	head[at + WIRE_UDP_BYTES + 4] = 0xff; /* FECN, BECN, reserved */
	return wire_crc32(wire_crc32(0, head, NO_LRH + copied), ip + copied,
			  n - copied);
}
