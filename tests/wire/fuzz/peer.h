/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The peer, a simulated host: it sends valid and invalid packets. */
#pragma once

#include "host.h"
#include "wire/packet.h"

/*
 * One element of an input.  kind selects the function that is called, which
 * defines the meaning of the other members.  For packets it is as follows.
 */
struct record {
	uint8_t kind, qp, op;
	int8_t psn; /* difference from the expected PSN */
	uint8_t key;
	int8_t offset; /* of the address, in units of 8 bytes */
	uint8_t length;
	uint8_t flags;
};

/*
 * Flags of a packet.  local.c and rdmacm.c use some of the bits for other
 * properties of WRs and messages.
 */
enum {
	FLAG_LATER = 1, /* the host receives it with the next packet */
	FLAG_ACK = 2, /* AckReq */
	FLAG_SOLICITED = 4,
	FLAG_ODD = 8, /* invalid length or, of an atomic, address */
	FLAG_FAR = 16, /* psn is in units of 0x10001 */
	FLAG_BIG = 32, /* length is in larger units */
	FLAG_RAW = 64, /* op is the opcode, also an invalid one */
	FLAG_RARE = 128, /* offset selects a property (RARE_ in peer.c) */
};

void peer_request(const struct record *r);
void peer_answer(const struct record *r);
void peer_datagram(const struct record *r);
/* Send a MAD of n bytes to QP 1. */
void peer_mad(const struct record *r, const uint8_t *mad, size_t n);
/*
 * Send a packet of n bytes, from the BTH on, followed by its ICRC.  n is
 * rounded down to a multiple of 4.  If r->length is odd, the P_Key and the
 * QPN are replaced by valid ones.
 */
void peer_raw(const struct record *r, const uint8_t *bytes, size_t n);
