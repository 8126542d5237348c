/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Building of RoCE v2 packets:
 *
 *	Ethernet | IPv4 or IPv6 | UDP | BTH | extensions | payload | pad | ICRC
 *
 * and of RoCE v1 packets, with a GRH (in the format of IPv6) in place of IP
 * and UDP.
 *
 * The sender (sender.h) builds from the BTH on, as the kernel adds the rest.
 * Whole packets are for pcap files (tools/trace/trace_pcap.c) and for the CM
 * (kernel-shim/cm/wire.c), which sends the part after UDP.  Pure functions on
 * the caller's buffers.  parse.h has the reverse.
 */
#pragma once

#include <stddef.h>

#include "wire/network.h"
#include "wire/opcode.h"

/*
 * The values of the network headers.  A RoCE v2 packet uses IPv4 if both GIDs
 * are IPv4 addresses.
 */
struct wire_path {
	bool v1; /* RoCE v1 */
	uint8_t sgid[16], dgid[16];
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label;
	uint16_t ip_id; /* IPv4 only */
	uint16_t source_port;
	uint16_t port; /* UDP destination port; 0: WIRE_PORT */
	/* sending QP, if known; for wire_watcher, not in the packet */
	uint32_t qpn;
};

/*
 * The contents of a packet from the BTH on.  Members that the opcode does not
 * use are ignored.
 */
struct wire_packet {
	struct wire_bth bth; /* pad is computed when a packet is built */
#define HEADER(name, NAME, bytes) struct wire_##name name;
	WIRE_EXTENSIONS(HEADER)
#undef HEADER
	uint32_t length; /* length of the payload, without the pad */
	/* first `known` bytes of the payload; the others are 0 */
	const void *payload;
	uint32_t known;
};

#define WIRE_MAX_PAYLOAD 4096u
/* Limit of the bytes from the BTH to the pad */
#define WIRE_MAX_TRANSPORT (64u + WIRE_MAX_PAYLOAD)
/* Limit of the bytes that are not payload */
#define WIRE_MAX_HEADERS 128u
#define WIRE_MAX_BYTES (WIRE_MAX_HEADERS + WIRE_MAX_PAYLOAD)

/* Return the pad that makes length a multiple of 4. */
static inline uint32_t wire_pad(uint32_t length)
{
	return -length & 3;
}

/* Return whether packets of the path use IPv4. */
bool wire_path_is_ipv4(const struct wire_path *path);

/*
 * Write the BTH and the extension headers.  The pad count is that of
 * p->length.  Return the end.
 */
uint8_t *wire_put_headers(const struct wire_packet *p, uint8_t *to);

/*
 * Write everything from the BTH to the pad.  p->length is at most
 * WIRE_MAX_PAYLOAD.  Return the end.
 */
uint8_t *wire_put_transport(const struct wire_packet *p, uint8_t *to);

/*
 * Write the headers of Ethernet, IP and UDP, or Ethernet and GRH, for a
 * packet of @bytes bytes after them.  The UDP checksum is 0.  Return the end;
 * *ip is the start of the IP header.
 */
uint8_t *wire_put_network(const struct wire_path *path, size_t bytes,
			  uint8_t *to, uint8_t **ip);

/*
 * Write only the IP header or the GRH, for @bytes bytes after it.  Return the
 * end.
 */
uint8_t *wire_put_ip(const struct wire_path *path, size_t bytes, uint8_t *to);

/*
 * Build a whole packet, from the Ethernet header to the ICRC.  Return its
 * length, or 0 if the opcode is not defined or the payload too long.
 */
size_t wire_build(const struct wire_path *path, const struct wire_packet *p,
		  uint8_t to[WIRE_MAX_BYTES]);
