/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A WR as packets: which opcodes and PSNs they have, and which part of the
 * message (IB 9.2.3, 9.7).
 */
#pragma once

#include "wire/packet.h"

/* Of enum ibv_wr_opcode, newer than the libibverbs may be. */
#define WR_FLUSH 14
#define WR_ATOMIC_WRITE 15

struct message {
	enum wire_transport transport;
	uint64_t op; /* enum ibv_wr_opcode */
	uint64_t length;
	uint32_t mtu; /* WIRE_MAX_PAYLOAD at most */
	uint32_t psn; /* of its first packet */
	uint32_t msn; /* of the answer */
	struct wire_packet head; /* what its headers have */
	/* the first bytes of what is sent, or of what a READ brings */
	const uint8_t *payload;
	uint32_t known;
};

/* Of a longer message the first and the last ones, half of them each. */
#define MESSAGE_PACKETS 64u

/* Packet i of n; there are `left_out` before it that it is not called for. */
typedef void packet_fn(void *arg, const struct wire_packet *p, uint64_t i,
		       uint64_t n, uint64_t left_out);

/* Does a WR of that opcode go to another QP? */
bool message_has_packets(uint64_t op);
/* How many PSNs it takes. */
uint64_t message_psns(const struct message *m);

/* What its requester sends, what its responder answers if all is well, and what
 * it says else. */
void message_request(const struct message *m, packet_fn *fn, void *arg);
void message_answer(const struct message *m, packet_fn *fn, void *arg);
void message_nak(const struct message *m, uint8_t syndrome, packet_fn *fn,
		 void *arg);
