// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "wire/address.h"
#include "wire/icrc.h"
#include "wire/packet.h"

static uint32_t pad_of(uint32_t length)
{
	return -length & 3;
}

/* ------------------------------------------------------- transport */

static uint8_t *put_payload(const struct wire_packet *p, uint8_t *to)
{
	uint32_t known = p->known < p->length ? p->known : p->length;
	uint32_t zeros = p->length - known + pad_of(p->length);

	if (known)
		memcpy(to, p->payload, known);
	memset(to + known, 0, zeros);
	return to + known + zeros;
}

uint8_t *wire_put_transport(const struct wire_packet *p, uint8_t *to)
{
	unsigned int parts = wire_parts(p->bth.opcode);
	struct wire_bth bth = p->bth;

	bth.pad = parts & WIRE_HAS(PAYLOAD) ? pad_of(p->length) & 3 : 0;
	to = wire_put_bth(&bth, to);
#define HEADER(name, NAME, bytes)   \
	if (parts & WIRE_HAS(NAME)) \
		to = wire_put_##name(&p->name, to);
	WIRE_EXTENSIONS(HEADER)
#undef HEADER
	return parts & WIRE_HAS(PAYLOAD) ? put_payload(p, to) : to;
}

/* ------------------------------------------------------- network */

static uint16_t ip_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < WIRE_IPV4_BYTES; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint8_t *put_ipv4(const struct wire_path *path, size_t bytes,
			 uint8_t *to)
{
	struct wire_ipv4 ip = {
		.version = 4,
		.words = WIRE_IPV4_BYTES / 4,
		.traffic_class = path->traffic_class,
		.bytes = (uint16_t)(WIRE_IPV4_BYTES + bytes),
		.id = path->ip_id,
		.dont_fragment = true,
		.hop_limit = path->hop_limit,
		.protocol = WIRE_PROTOCOL_UDP,
		.from = (uint32_t)field_get(path->sgid, 96, 32),
		.to = (uint32_t)field_get(path->dgid, 96, 32),
	};

	wire_put_ipv4(&ip, to);
	ip.checksum = ip_checksum(to);
	return wire_put_ipv4(&ip, to);
}

static uint8_t *put_ipv6(const struct wire_path *path, size_t bytes,
			 uint8_t *to)
{
	const struct wire_ipv6 ip = {
		.version = 6,
		.traffic_class = path->traffic_class,
		.flow_label = path->flow_label,
		.bytes = (uint16_t)bytes,
		.protocol = WIRE_PROTOCOL_UDP,
		.hop_limit = path->hop_limit,
		.from_high = field_get(path->sgid, 0, 64),
		.from_low = field_get(path->sgid, 64, 64),
		.to_high = field_get(path->dgid, 0, 64),
		.to_low = field_get(path->dgid, 64, 64),
	};

	return wire_put_ipv6(&ip, to);
}

uint8_t *wire_put_network(const struct wire_path *path, size_t bytes,
			  uint8_t *to, uint8_t **ip)
{
	bool v4 = wire_gid_is_ipv4(path->sgid) && wire_gid_is_ipv4(path->dgid);
	const struct wire_ethernet ethernet = {
		.to = wire_mac(path->dgid),
		.from = wire_mac(path->sgid),
		.type = v4 ? WIRE_TYPE_IPV4 : WIRE_TYPE_IPV6,
	};
	/* its checksum is 0, as rxe's: the ICRC is what counts */
	const struct wire_udp udp = {
		.from = path->source_port,
		.to = WIRE_PORT,
		.bytes = (uint16_t)(WIRE_UDP_BYTES + bytes),
	};

	*ip = wire_put_ethernet(&ethernet, to);
	to = (v4 ? put_ipv4 : put_ipv6)(path, udp.bytes, *ip);
	return wire_put_udp(&udp, to);
}

/* ------------------------------------------------------- all of it */

static size_t transport_bytes(const struct wire_packet *p)
{
	unsigned int parts = wire_parts(p->bth.opcode);
	size_t n = WIRE_BTH_BYTES;

#define HEADER(name, NAME, bytes) n += parts & WIRE_HAS(NAME) ? (bytes) : 0;
	WIRE_EXTENSIONS(HEADER)
#undef HEADER
	if (parts & WIRE_HAS(PAYLOAD))
		n += p->length + pad_of(p->length);
	return n;
}

size_t wire_build(const struct wire_path *path, const struct wire_packet *p,
		  uint8_t to[WIRE_MAX_BYTES])
{
	uint8_t *ip, *end;
	uint32_t icrc;

	if (!wire_parts(p->bth.opcode) || p->length > WIRE_MAX_PAYLOAD)
		return 0;
	end = wire_put_network(path, transport_bytes(p) + WIRE_ICRC_BYTES, to,
			       &ip);
	end = wire_put_transport(p, end);
	icrc = wire_icrc(ip, (size_t)(end - ip));
	*end++ = (uint8_t)icrc;
	*end++ = (uint8_t)(icrc >> 8);
	*end++ = (uint8_t)(icrc >> 16);
	*end++ = (uint8_t)(icrc >> 24);
	return (size_t)(end - to);
}
