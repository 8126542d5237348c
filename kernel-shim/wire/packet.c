// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "wire/address.h"
#include "wire/icrc.h"
#include "wire/packet.h"

/* ------------------------------------------------------- transport */

static uint8_t *put_payload(const struct wire_packet *p, uint8_t *to)
{
	uint32_t known = p->known < p->length ? p->known : p->length;
	uint32_t zeros = p->length - known + wire_pad(p->length);

	if (known)
		memcpy(to, p->payload, known);
	memset(to + known, 0, zeros);
	return to + known + zeros;
}

uint8_t *wire_put_headers(const struct wire_packet *p, uint8_t *to)
{
	unsigned int parts = wire_parts(p->bth.opcode);
	struct wire_bth bth = p->bth;

	bth.pad = parts & WIRE_HAS(PAYLOAD) ? wire_pad(p->length) & 3 : 0;
	to = wire_put_bth(&bth, to);
#define HEADER(name, NAME, bytes)   \
	if (parts & WIRE_HAS(NAME)) \
		to = wire_put_##name(&p->name, to);
	WIRE_EXTENSIONS(HEADER)
#undef HEADER
	return to;
}

uint8_t *wire_put_transport(const struct wire_packet *p, uint8_t *to)
{
	to = wire_put_headers(p, to);
	return wire_parts(p->bth.opcode) & WIRE_HAS(PAYLOAD) ?
		       put_payload(p, to) :
		       to;
}

/* ------------------------------------------------------- network */

/* Return the Internet checksum (RFC 1071) of sum and n bytes; n is even. */
static uint16_t checksum(uint32_t sum, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
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
	ip.checksum = checksum(0, to, WIRE_IPV4_BYTES);
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
		.protocol = path->v1 ? WIRE_PROTOCOL_BTH : WIRE_PROTOCOL_UDP,
		.hop_limit = path->hop_limit,
		.from_high = field_get(path->sgid, 0, 64),
		.from_low = field_get(path->sgid, 64, 64),
		.to_high = field_get(path->dgid, 0, 64),
		.to_low = field_get(path->dgid, 64, 64),
	};

	return wire_put_ipv6(&ip, to);
}

bool wire_path_is_ipv4(const struct wire_path *path)
{
	return !path->v1 && wire_gid_is_ipv4(path->sgid) &&
	       wire_gid_is_ipv4(path->dgid);
}

uint8_t *wire_put_ip(const struct wire_path *path, size_t bytes, uint8_t *to)
{
	return wire_path_is_ipv4(path) ? put_ipv4(path, bytes, to) :
					 put_ipv6(path, bytes, to);
}

uint8_t *wire_put_network(const struct wire_path *path, size_t bytes,
			  uint8_t *to, uint8_t **ip)
{
	const struct wire_ethernet ethernet = {
		.to = wire_mac(path->dgid),
		.from = wire_mac(path->sgid),
		.type = path->v1		? WIRE_TYPE_V1 :
			wire_path_is_ipv4(path) ? WIRE_TYPE_IPV4 :
						  WIRE_TYPE_IPV6,
	};
	/* checksum 0, none: the ICRC protects the packet */
	const struct wire_udp udp = {
		.from = path->source_port,
		.to = path->port ? path->port : WIRE_PORT,
		.bytes = (uint16_t)(WIRE_UDP_BYTES + bytes),
	};

	*ip = wire_put_ethernet(&ethernet, to);
	if (path->v1)
		return wire_put_ip(path, bytes, *ip);
	to = wire_put_ip(path, udp.bytes, *ip);
	return wire_put_udp(&udp, to);
}

/* ------------------------------------------------------- whole packets */

static size_t transport_bytes(const struct wire_packet *p)
{
	unsigned int parts = wire_parts(p->bth.opcode);
	size_t n = WIRE_BTH_BYTES + wire_parts_bytes(parts);

	if (parts & WIRE_HAS(PAYLOAD))
		n += p->length + wire_pad(p->length);
	return n;
}

/*
 * Store the UDP checksum, which IPv6 requires (RFC 8200, 8.1).  rxe sends 0
 * nevertheless.
 */
static void put_udp_checksum(uint8_t *ip, const uint8_t *end)
{
	uint8_t *udp = ip + WIRE_IPV6_BYTES, *addresses = udp - 32;
	size_t n = (size_t)(end - udp);
	uint16_t sum = checksum((uint32_t)n + WIRE_PROTOCOL_UDP, addresses,
				(size_t)(end - addresses));

	field_put(udp, 48, 16, sum ? sum : 0xffff);
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
	end = wire_put_icrc(icrc, end);
	if (!path->v1 && !wire_path_is_ipv4(path))
		put_udp_checksum(ip, end);
	return (size_t)(end - to);
}
