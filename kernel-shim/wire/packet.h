/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets of RoCE, put together:
 *
 *	Ethernet | IPv4 or IPv6 | UDP | BTH | extensions | payload | pad | ICRC
 *
 * or of its version 1, which has a global route header (as IPv6's) in place of
 * IP and UDP.
 *
 * Nothing is sent here (sender.h), and nothing is kept.
 */
#pragma once

#include <stddef.h>

#include "wire/network.h"
#include "wire/opcode.h"

/* From whom to whom, and how; version 2 over IPv4 if both GIDs are that. */
struct wire_path {
	bool v1;
	uint8_t sgid[16], dgid[16];
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label;
	uint16_t ip_id; /* of IPv4 */
	uint16_t source_port;
	uint16_t port; /* where it goes; 0: WIRE_PORT */
	uint32_t qpn; /* of who sends, where that is known, for who watches */
};

/* What its opcode has no use for is not looked at. */
struct wire_packet {
	struct wire_bth bth; /* the pad is the builder's */
#define HEADER(name, NAME, bytes) struct wire_##name name;
	WIRE_EXTENSIONS(HEADER)
#undef HEADER
	uint32_t length; /* of the payload */
	const void *payload; /* so many bytes of it, then zeros */
	uint32_t known;
};

#define WIRE_MAX_PAYLOAD 4096u
/* From the BTH to the pad */
#define WIRE_MAX_TRANSPORT (64u + WIRE_MAX_PAYLOAD)
/* Of all that is not payload */
#define WIRE_MAX_HEADERS 128u
#define WIRE_MAX_BYTES (WIRE_MAX_HEADERS + WIRE_MAX_PAYLOAD)

static inline uint32_t wire_pad(uint32_t length)
{
	return -length & 3;
}

/* Both GIDs are of IPv4, and so are its packets. */
bool wire_path_is_ipv4(const struct wire_path *path);

/* The BTH and the extensions, what is behind them; pad is that of p->length. */
uint8_t *wire_put_headers(const struct wire_packet *p, uint8_t *to);

/* From the BTH to the pad: what is behind it.  length is WIRE_MAX_PAYLOAD at
 * most. */
uint8_t *wire_put_transport(const struct wire_packet *p, uint8_t *to);

/* Ethernet, IP and UDP (or GRH) in front of so many bytes: what is behind them.
 * *ip is where IP begins. */
uint8_t *wire_put_network(const struct wire_path *path, size_t bytes,
			  uint8_t *to, uint8_t **ip);

/* Just IP, or the GRH; bytes are those behind it. */
uint8_t *wire_put_ip(const struct wire_path *path, size_t bytes, uint8_t *to);

/* All of it; how many bytes that are, or 0: there is no such opcode, or the
 * payload is too long. */
size_t wire_build(const struct wire_path *path, const struct wire_packet *p,
		  uint8_t to[WIRE_MAX_BYTES]);
