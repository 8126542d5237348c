/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segmentation of a WR into RoCE packets: opcode, PSN and payload range of
 * each packet (IB 9.2.3, 9.7). trace_pcap.c uses it to reconstruct packets
 * from the records of WRs.
 */
#pragma once

#include "wire/packet.h"

/*
 * Values of enum ibv_wr_opcode that the installed libibverbs may not define.
 */
#define WR_FLUSH 14
#define WR_ATOMIC_WRITE 15

struct message {
	enum wire_transport transport;
	uint64_t op; /* enum ibv_wr_opcode */
	uint64_t length;
	uint32_t mtu; /* at most WIRE_MAX_PAYLOAD */
	uint32_t psn; /* PSN of the first packet */
	uint32_t msn; /* MSN of the response */
	struct wire_packet head; /* template of the headers */
	/*
	 * the first `known` bytes of the data sent, or of the data that a
	 * READ returns
	 */
	const uint8_t *payload;
	uint32_t known;
};

/*
 * Maximum number of packets made of one message. Of a longer message, half of
 * them are its first packets and half its last.
 */
#define MESSAGE_PACKETS 64u

/*
 * Callback for packet @i of @n. @left_out packets right before it were left
 * out.
 */
typedef void packet_fn(void *arg, const struct wire_packet *p, uint64_t i,
		       uint64_t n, uint64_t left_out);

/* Whether a WR with that opcode sends packets to another QP. */
bool message_has_packets(uint64_t op);
/* Number of PSNs that the request occupies. */
uint64_t message_psns(const struct message *m);

/*
 * Call @fn for the request packets, for the response packets of a successful
 * request, or for a NAK with @syndrome.
 */
void message_request(const struct message *m, packet_fn *fn, void *arg);
void message_answer(const struct message *m, packet_fn *fn, void *arg);
void message_nak(const struct message *m, uint8_t syndrome, packet_fn *fn,
		 void *arg);
