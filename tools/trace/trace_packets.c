// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Segmentation of WRs into RoCE packets (trace_packets.h). */
#include <infiniband/verbs.h>

#include "trace_packets.h"

/*
 * Opcodes of the packets of a message: of several packets, and of a single
 * one.
 */
struct opcodes {
	uint8_t first, middle, last, only;
	bool is_there;
};

static const struct opcodes requests[] = {
	[IBV_WR_RDMA_WRITE] = { WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE,
				WIRE_WRITE_LAST, WIRE_WRITE_ONLY, true },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE,
					 WIRE_WRITE_LAST_IMM,
					 WIRE_WRITE_ONLY_IMM, true },
	[IBV_WR_SEND] = { WIRE_SEND_FIRST, WIRE_SEND_MIDDLE, WIRE_SEND_LAST,
			  WIRE_SEND_ONLY, true },
	[IBV_WR_SEND_WITH_IMM] = { WIRE_SEND_FIRST, WIRE_SEND_MIDDLE,
				   WIRE_SEND_LAST_IMM, WIRE_SEND_ONLY_IMM,
				   true },
	[IBV_WR_SEND_WITH_INV] = { WIRE_SEND_FIRST, WIRE_SEND_MIDDLE,
				   WIRE_SEND_LAST_INV, WIRE_SEND_ONLY_INV,
				   true },
	[IBV_WR_RDMA_READ] = { .only = WIRE_READ_REQUEST, .is_there = true },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { .only = WIRE_COMPARE_SWAP,
					.is_there = true },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { .only = WIRE_FETCH_ADD,
					  .is_there = true },
	[WR_FLUSH] = { .only = WIRE_FLUSH, .is_there = true },
	[WR_ATOMIC_WRITE] = { .only = WIRE_ATOMIC_WRITE, .is_there = true },
};

static const struct opcodes read_answers = { WIRE_READ_FIRST, WIRE_READ_MIDDLE,
					     WIRE_READ_LAST, WIRE_READ_ONLY,
					     true };

bool message_has_packets(uint64_t op)
{
	return op < sizeof(requests) / sizeof(*requests) &&
	       requests[op].is_there;
}

static uint64_t segments(const struct message *m)
{
	return m->length ? (m->length + m->mtu - 1) / m->mtu : 1;
}

uint64_t message_psns(const struct message *m)
{
	return m->op == WR_FLUSH ? 1 : segments(m);
}

static uint8_t opcode(const struct opcodes *o, uint64_t i, uint64_t n)
{
	if (n == 1)
		return o->only;
	if (!i)
		return o->first;
	return i == n - 1 ? o->last : o->middle;
}

/* Set the payload of packet @i. */
static void set_payload(const struct message *m, uint64_t i,
			struct wire_packet *p)
{
	uint64_t from = i * m->mtu, left = m->length - from;

	p->length = left < m->mtu ? (uint32_t)left : m->mtu;
	p->known = 0;
	if (from < m->known) {
		p->payload = m->payload + from;
		p->known = m->known - (uint32_t)from;
	}
}

static void segment(const struct message *m, const struct opcodes *o,
		    const struct wire_packet *head, packet_fn *fn, void *arg)
{
	uint64_t i, n = segments(m), left_out = 0;
	struct wire_packet p = *head;

	for (i = 0; i < n; i++) {
		if (i == MESSAGE_PACKETS / 2 && n > MESSAGE_PACKETS) {
			left_out = n - MESSAGE_PACKETS;
			i += left_out;
		}
		p.bth.opcode = (uint8_t)(m->transport | opcode(o, i, n));
		p.bth.psn = (m->psn + i) & WIRE_PSN_MASK;
		p.bth.solicited = head->bth.solicited && i == n - 1;
		p.bth.ack_request = head->bth.ack_request && i == n - 1;
		set_payload(m, i, &p);
		fn(arg, &p, i, n, left_out);
		left_out = 0;
	}
}

void message_request(const struct message *m, packet_fn *fn, void *arg)
{
	const struct opcodes *o = &requests[m->op];
	struct wire_packet p = m->head;

	p.bth.ack_request = m->transport == WIRE_RC || m->transport == WIRE_XRC;
	if (o->middle) {
		segment(m, o, &p, fn, arg);
		return;
	}
	p.bth.opcode = (uint8_t)(m->transport | o->only);
	p.bth.psn = m->psn;
	if (m->op == WR_ATOMIC_WRITE)
		set_payload(m, 0, &p);
	fn(arg, &p, 0, 1, 0);
}

static struct wire_packet answer(const struct message *m, uint8_t low,
				 uint8_t syndrome)
{
	struct wire_packet p = m->head;

	p.bth.solicited = p.bth.ack_request = false;
	p.bth.opcode = (uint8_t)(m->transport | low);
	p.bth.psn = m->psn;
	p.aeth.syndrome = syndrome;
	p.aeth.msn = m->msn & WIRE_PSN_MASK;
	return p;
}

void message_answer(const struct message *m, packet_fn *fn, void *arg)
{
	struct wire_packet p = answer(m, WIRE_ACKNOWLEDGE, WIRE_ACK);

	switch (m->op) {
	case IBV_WR_RDMA_READ:
		segment(m, &read_answers, &p, fn, arg);
		return;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		p.bth.opcode =
			(uint8_t)(m->transport | WIRE_ATOMIC_ACKNOWLEDGE);
		break;
	case WR_FLUSH: /* annex A19: as the response of a READ of length 0 */
	case WR_ATOMIC_WRITE:
		p.bth.opcode = (uint8_t)(m->transport | WIRE_READ_ONLY);
		break;
	default:
		p.bth.psn = (m->psn + segments(m) - 1) & WIRE_PSN_MASK;
	}
	fn(arg, &p, 0, 1, 0);
}

void message_nak(const struct message *m, uint8_t syndrome, packet_fn *fn,
		 void *arg)
{
	struct wire_packet p = answer(m, WIRE_ACKNOWLEDGE, syndrome);

	fn(arg, &p, 0, 1, 0);
}
