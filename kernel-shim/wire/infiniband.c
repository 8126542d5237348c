// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "wire/icrc.h"
#include "wire/infiniband.h"

/* x^16 + x^12 + x^3 + x + 1; the least significant bit is that of x^15 */
#define VCRC_POLYNOMIAL 0xd008u

uint16_t wire_vcrc(const uint8_t *lrh, size_t n)
{
	uint32_t crc = 0xffff;
	size_t i;
	int bit;

	for (i = 0; i < n; i++) {
		crc ^= lrh[i];
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ VCRC_POLYNOMIAL : crc >> 1;
	}
	return (uint16_t)~crc;
}

/*
 * Return the ICRC of a packet without a GRH: the CRC-32 of Ethernet, with ones
 * in place of the VL and of FECN, BECN and reserved bits of the BTH (IB
 * 7.8.1).
 */
static uint32_t local_icrc(const uint8_t *lrh, size_t n)
{
	uint8_t head[WIRE_LRH_BYTES + WIRE_BTH_BYTES];

	memcpy(head, lrh, sizeof(head));
	head[0] |= 0xf0;
	head[WIRE_LRH_BYTES + 4] = 0xff;
	return wire_crc32(wire_crc32(0, head, sizeof(head)), lrh + sizeof(head),
			  n - sizeof(head));
}

static uint8_t *put_grh(const struct wire_path *grh, size_t bytes, uint8_t *to)
{
	struct wire_path path = *grh;

	path.v1 = true; /* a GRH has the same format on RoCE v1 */
	return wire_put_ip(&path, bytes, to);
}

size_t wire_build_infiniband(const struct wire_lrh *lrh,
			     const struct wire_path *grh,
			     const struct wire_packet *p,
			     uint8_t to[WIRE_MAX_BYTES])
{
	uint8_t *bth = to + WIRE_LRH_BYTES + (grh ? WIRE_IPV6_BYTES : 0), *end;
	struct wire_lrh head = *lrh;
	uint32_t icrc;
	uint16_t vcrc;

	if (!wire_parts(p->bth.opcode) || p->length > WIRE_MAX_PAYLOAD)
		return 0;
	end = wire_put_transport(p, bth);
	head.next = grh ? WIRE_NEXT_GRH : WIRE_NEXT_BTH;
	head.words = (uint16_t)((end + WIRE_ICRC_BYTES - to) / 4);
	wire_put_lrh(&head, to);
	if (grh)
		put_grh(grh, (size_t)(end - bth) + WIRE_ICRC_BYTES,
			to + WIRE_LRH_BYTES);
	icrc = grh ? wire_icrc(to + WIRE_LRH_BYTES,
			       (size_t)(end - to) - WIRE_LRH_BYTES) :
		     local_icrc(to, (size_t)(end - to));
	end = wire_put_icrc(icrc, end);
	vcrc = wire_vcrc(to, (size_t)(end - to));
	*end++ = (uint8_t)vcrc;
	*end++ = (uint8_t)(vcrc >> 8);
	return (size_t)(end - to);
}
