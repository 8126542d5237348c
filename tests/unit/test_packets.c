// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The packets of a WR (tools/trace/trace_packets.c), for cases that tests with
 * stock clients do not cover.
 */
#include <infiniband/verbs.h>

#include "tools/trace/trace_packets.h"
#include "unit_base.h"

#define MOST 128
static struct wire_packet seen[MOST];
static uint64_t left_out[MOST];
static unsigned int n_seen;

static void see(void *arg, const struct wire_packet *p, uint64_t i, uint64_t n,
		uint64_t before)
{
	(void)arg;
	ck_assert_uint_lt(i, n);
	ck_assert_uint_lt(n_seen, MOST);
	left_out[n_seen] = before;
	seen[n_seen++] = *p;
}

static struct message message(uint64_t op, uint64_t length)
{
	return (struct message){
		.transport = WIRE_RC,
		.op = op,
		.length = length,
		.mtu = 1024,
		.psn = 0xffffff,
		.msn = 7,
		.head.bth.solicited = true,
	};
}

/*
 * Annex A19: a FLUSH is one packet of any length; its response is that of a
 * READ of 0 bytes.
 */
START_TEST(flush_packets)
{
	struct message m = message(WR_FLUSH, 1 << 20);

	m.head.reth.length = 1 << 20;
	n_seen = 0;
	message_request(&m, see, NULL);
	ck_assert_uint_eq(n_seen, 1);
	ck_assert_uint_eq(seen[0].bth.opcode, WIRE_FLUSH);
	ck_assert_uint_eq(wire_parts(WIRE_FLUSH),
			  WIRE_HAS(FETH) | WIRE_HAS(RETH));
	ck_assert_uint_eq(message_psns(&m), 1);
	message_answer(&m, see, NULL);
	ck_assert_uint_eq(n_seen, 2);
	ck_assert_uint_eq(seen[1].bth.opcode, WIRE_READ_ONLY);
	ck_assert_uint_eq(seen[1].length, 0);
	ck_assert_uint_eq(seen[1].bth.psn, 0xffffff);
	ck_assert_uint_eq(seen[1].aeth.msn, 7);
}
END_TEST

/* A message of 2 GiB, the maximum, and an invalid length. */
START_TEST(longest_messages)
{
	static const uint64_t lengths[] = { 1ull << 31, UINT64_MAX };
	struct message m;
	unsigned int i, l;
	uint64_t n;

	for (l = 0; l < 2; l++) {
		m = message(IBV_WR_SEND_WITH_INV, lengths[l]);
		n_seen = 0;
		message_request(&m, see, NULL);
		n = message_psns(&m);
		if (l) /* invalid: any number of packets */
			continue;
		ck_assert_uint_eq(n, 1 << 21);
		ck_assert_uint_eq(n_seen, MESSAGE_PACKETS);
		ck_assert_uint_eq(left_out[MESSAGE_PACKETS / 2],
				  n - MESSAGE_PACKETS);
		for (i = 1; i < MESSAGE_PACKETS - 1; i++)
			ck_assert(seen[i].bth.opcode == WIRE_SEND_MIDDLE &&
				  !seen[i].bth.ack_request &&
				  !seen[i].bth.solicited);
		ck_assert_uint_eq(seen[0].bth.opcode, WIRE_SEND_FIRST);
		ck_assert(seen[i].bth.opcode == WIRE_SEND_LAST_INV &&
			  seen[i].bth.ack_request && seen[i].bth.solicited);
		ck_assert_uint_eq(seen[i].bth.psn, (n - 2) & WIRE_PSN_MASK);
		ck_assert_uint_eq(seen[i].length, 1024);
	}
}
END_TEST

/* Number of packets for lengths around multiples of the MTU. */
START_TEST(packet_counts)
{
	static const uint64_t of[][2] = {
		{ 0, 1 },    { 1, 1 },	  { 1024, 1 },
		{ 1025, 2 }, { 2048, 2 }, { 2049, 3 }
	};
	struct message m;
	unsigned int i;

	for (i = 0; i < sizeof(of) / sizeof(*of); i++) {
		m = message(IBV_WR_RDMA_READ, of[i][0]);
		n_seen = 0;
		message_answer(&m, see, NULL);
		ck_assert_uint_eq(n_seen, of[i][1]);
		ck_assert_uint_eq(message_psns(&m), of[i][1]);
		ck_assert_uint_eq(seen[n_seen - 1].bth.opcode,
				  n_seen == 1 ? WIRE_READ_ONLY :
						WIRE_READ_LAST);
		message_request(&m, see, NULL);
		ck_assert_uint_eq(n_seen, of[i][1] + 1);
	}
}
END_TEST

START_TEST(messages_without_packets)
{
	ck_assert(!message_has_packets(IBV_WR_LOCAL_INV));
	ck_assert(!message_has_packets(IBV_WR_BIND_MW));
	ck_assert(!message_has_packets(UINT64_MAX));
	ck_assert(message_has_packets(WR_ATOMIC_WRITE));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("packets");

	add(s, flush_packets);
	add(s, longest_messages);
	add(s, packet_counts);
	add(s, messages_without_packets);
	return run_suite(s);
}
