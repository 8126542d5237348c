// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "wire/parse.h"
#include "wire/icrc.h"

static const uint8_t *get_extensions(struct wire_packet *p, unsigned int parts,
				     const uint8_t *at)
{
#define HEADER(name, NAME, bytes)   \
	if (parts & WIRE_HAS(NAME)) \
		at = wire_get_##name(&p->name, at);
	WIRE_EXTENSIONS(HEADER)
#undef HEADER
	return at;
}

/* Check the payload and the pad, n bytes together; low: opcode bits 4:0. */
static enum wire_refusal check_payload(unsigned int parts, uint8_t low,
				       unsigned int pad, size_t n)
{
	if (!(parts & WIRE_HAS(PAYLOAD)))
		return n ? WIRE_LONG : pad ? WIRE_PAD : WIRE_TAKEN;
	if (n > WIRE_MAX_PAYLOAD)
		return WIRE_LONG;
	if (pad > n)
		return WIRE_PAD;
	if (low == WIRE_ATOMIC_WRITE && n - pad != WIRE_ATOMIC_WRITE_BYTES)
		return n < WIRE_ATOMIC_WRITE_BYTES ? WIRE_SHORT : WIRE_LONG;
	return WIRE_TAKEN;
}

enum wire_refusal wire_parse(struct wire_packet *to, const uint8_t *from,
			     size_t n)
{
	enum wire_refusal refusal;
	struct wire_bth bth;
	const uint8_t *at;
	unsigned int parts;
	size_t headers;

	if (n < WIRE_BTH_BYTES)
		return WIRE_SHORT;
	if (n % 4)
		return WIRE_UNEVEN;
	at = wire_get_bth(&bth, from);
	parts = wire_parts(bth.opcode);
	if (bth.version)
		return WIRE_VERSION;
	if (!parts)
		return WIRE_OPCODE;
	headers = WIRE_BTH_BYTES + wire_parts_bytes(parts);
	if (n < headers)
		return WIRE_SHORT;
	n -= headers;
	refusal =
		check_payload(parts, bth.opcode & ~WIRE_TRANSPORT, bth.pad, n);
	if (refusal)
		return refusal;
	memset(to, 0, sizeof(*to));
	to->bth = bth;
	to->payload = get_extensions(to, parts, at);
	to->length = to->known = (uint32_t)n - bth.pad;
	return WIRE_TAKEN;
}

/* ------------------------------------------------------- network */

/* Make the GID ::ffff:a.b.c.d of an IPv4 address. */
static void gid_of_ipv4(uint8_t gid[16], uint32_t address)
{
	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	field_put(gid, 96, 32, address);
}

/*
 * Parse the IPv4 header.  Return the start of UDP and its length in *bytes,
 * or NULL if the packet has options, is a fragment, or is not UDP.
 */
static const uint8_t *get_ipv4(struct wire_path *path, const uint8_t *at,
			       size_t n, size_t *bytes)
{
	struct wire_ipv4 ip;

	if (n < WIRE_IPV4_BYTES)
		return NULL;
	wire_get_ipv4(&ip, at);
	if (ip.words * 4 != WIRE_IPV4_BYTES || ip.bytes > n ||
	    ip.bytes < WIRE_IPV4_BYTES || ip.protocol != WIRE_PROTOCOL_UDP ||
	    field_get(at, 50, 14)) /* a fragment */
		return NULL;
	gid_of_ipv4(path->sgid, ip.from);
	gid_of_ipv4(path->dgid, ip.to);
	path->traffic_class = ip.traffic_class;
	path->hop_limit = ip.hop_limit;
	path->ip_id = ip.id;
	*bytes = ip.bytes - WIRE_IPV4_BYTES;
	return at + WIRE_IPV4_BYTES;
}

/* Likewise for IPv6; NULL if the packet has extension headers. */
static const uint8_t *get_ipv6(struct wire_path *path, const uint8_t *at,
			       size_t n, size_t *bytes)
{
	struct wire_ipv6 ip;

	if (n < WIRE_IPV6_BYTES)
		return NULL;
	wire_get_ipv6(&ip, at);
	if (ip.bytes > n - WIRE_IPV6_BYTES || ip.protocol != WIRE_PROTOCOL_UDP)
		return NULL;
	memcpy(path->sgid, at + 8, 16);
	memcpy(path->dgid, at + 24, 16);
	path->traffic_class = ip.traffic_class;
	path->hop_limit = ip.hop_limit;
	path->flow_label = ip.flow_label;
	*bytes = ip.bytes;
	return at + WIRE_IPV6_BYTES;
}

enum wire_refusal wire_parse_ip(struct wire_path *to, struct wire_packet *p,
				const uint8_t *ip, size_t n)
{
	struct wire_path path = { 0 };
	enum wire_refusal refusal;
	struct wire_udp udp;
	const uint8_t *at = NULL;
	size_t bytes;

	if (n && ip[0] >> 4 == 4)
		at = get_ipv4(&path, ip, n, &bytes);
	else if (n && ip[0] >> 4 == 6)
		at = get_ipv6(&path, ip, n, &bytes);
	if (!at || bytes < WIRE_UDP_BYTES)
		return WIRE_NO_ROCE;
	at = wire_get_udp(&udp, at);
	if (udp.to != WIRE_PORT || udp.bytes != bytes)
		return WIRE_NO_ROCE;
	path.source_port = udp.from;
	bytes -= WIRE_UDP_BYTES;
	if (bytes < WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		return WIRE_SHORT;
	bytes -= WIRE_ICRC_BYTES;
	if (wire_get_icrc(at + bytes) !=
	    wire_icrc(ip, (size_t)(at + bytes - ip)))
		return WIRE_BAD_ICRC;
	refusal = wire_parse(p, at, bytes);
	if (!refusal)
		*to = path;
	return refusal;
}

const char *wire_refusal_name(enum wire_refusal r)
{
	static const char *const name[] = {
		[WIRE_TAKEN] = "taken",
		[WIRE_NO_ROCE] = "not RoCE",
		[WIRE_SHORT] = "too short",
		[WIRE_LONG] = "too long",
		[WIRE_UNEVEN] = "length not a multiple of 4",
		[WIRE_VERSION] = "bad transport version",
		[WIRE_OPCODE] = "unknown opcode",
		[WIRE_PAD] = "bad pad count",
		[WIRE_BAD_ICRC] = "bad ICRC",
	};

	return r <= WIRE_BAD_ICRC ? name[r] : "?";
}
