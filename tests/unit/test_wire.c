// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets are compared with packets that were written by hand.  Their ICRC
 * was computed by another program, with zlib's crc32() over the fields that
 * the RoCEv2 annex names.  Kernel rxe accepted packets of that program.  The
 * CRCs of InfiniBand packets were computed so, by the fields of IB 7.8.
 */
#include "unit_base.h"
#include "wire/address.h"
#include "wire/icrc.h"
#include "wire/infiniband.h"
#include "wire/packet.h"

static const uint8_t send_ipv4[] = {
	0x02, 0x00, 0xc0, 0xa8, 0x4d, 0x02, 0x02, 0x00, 0xc0, 0xa8, 0x4d, 0x01,
	0x08, 0x00, 0x45, 0x10, 0x00, 0x38, 0x01, 0x02, 0x40, 0x00, 0x40, 0x11,
	0x1e, 0x4f, 0xc0, 0xa8, 0x4d, 0x01, 0xc0, 0xa8, 0x4d, 0x02, 0xe0, 0x44,
	0x12, 0xb7, 0x00, 0x24, 0x00, 0x00, 0x05, 0xb0, 0xff, 0xff, 0x00, 0x00,
	0x20, 0x02, 0x80, 0xff, 0xff, 0xfe, 0x11, 0x22, 0x33, 0x44, 0x68, 0x65,
	0x6c, 0x6c, 0x6f, 0x00, 0x00, 0x00, 0xa9, 0xc8, 0xc2, 0xad,
};
static const uint8_t datagram_ipv6[] = {
	0x02, 0x06, 0xe6, 0x9b, 0xe1, 0xe2, 0x52, 0x54, 0x00, 0x12, 0x34, 0x56,
	0x86, 0xdd, 0x62, 0x01, 0x23, 0x45, 0x00, 0x24, 0x11, 0x3f, 0xfe, 0x80,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x12,
	0x34, 0x56, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xd8, 0x72, 0x12, 0xb7, 0x00, 0x24,
	0x45, 0xea, 0x64, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
	0x00, 0x07, 0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x01, 0x02,
	0x03, 0x04, 0x48, 0xf8, 0xed, 0x90,
};
static const uint8_t send_local[] = {
	0x00, 0x32, 0x01, 0x02, 0x00, 0x09, 0xab, 0xcd, 0x05, 0xb0,
	0xff, 0xff, 0x00, 0x00, 0x20, 0x02, 0x80, 0xff, 0xff, 0xfe,
	0x11, 0x22, 0x33, 0x44, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x00,
	0x00, 0x00, 0x99, 0x48, 0x13, 0xce, 0xc7, 0xaa,
};
static const uint8_t send_global[] = {
	0x00, 0x33, 0x01, 0x02, 0x00, 0x13, 0xab, 0xcd, 0x62, 0x01, 0x23, 0x45,
	0x00, 0x1c, 0x1b, 0x3f, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x56, 0x20, 0x01, 0x0d, 0xb8,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
	0x05, 0xb0, 0xff, 0xff, 0x00, 0x00, 0x20, 0x02, 0x80, 0xff, 0xff, 0xfe,
	0x11, 0x22, 0x33, 0x44, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x00, 0x00, 0x00,
	0xf4, 0xd5, 0xb5, 0x34, 0x0b, 0x04,
};

static const struct wire_path ipv4 = {
	.sgid = { [10] = 0xff, 0xff, 192, 168, 77, 1 },
	.dgid = { [10] = 0xff, 0xff, 192, 168, 77, 2 },
	.traffic_class = 0x10,
	.hop_limit = 64,
	.ip_id = 258,
};

static uint8_t out[WIRE_MAX_BYTES];
static const uint8_t zeros[WIRE_MAX_BYTES];

START_TEST(crc)
{
	ck_assert_uint_eq(wire_crc32(0, "123456789", 9), 0xcbf43926);
	ck_assert_uint_eq(wire_crc32(wire_crc32(0, "1234", 4), "56789", 5),
			  0xcbf43926);
}
END_TEST

static const struct wire_packet send_with_imm = {
	.bth = { .opcode = WIRE_RC | WIRE_SEND_ONLY_IMM,
		 .solicited = true,
		 .pkey = 0xffff,
		 .qpn = 0x2002,
		 .ack_request = true,
		 .psn = 0xfffffe },
	.immdt.imm = 0x11223344,
	.length = 5,
	.payload = "hello",
	.known = 5,
};

START_TEST(over_ipv4)
{
	struct wire_path path = ipv4;

	path.source_port = wire_port(0x2002, 0x2003);
	ck_assert_uint_eq(wire_build(&path, &send_with_imm, out),
			  sizeof(send_ipv4));
	ck_assert_mem_eq(out, send_ipv4, sizeof(send_ipv4));
}
END_TEST

/* Without and with a GRH; and packets that do not exist. */
START_TEST(over_infiniband)
{
	const struct wire_lrh lrh = { .sl = 3, .dlid = 0x102, .slid = 0xabcd };
	const struct wire_path grh = {
		.sgid = { 0xfe, 0x80, [8] = 0x50, 0x54, 0, 0xff, 0xfe, 0x12,
			  0x34, 0x56 },
		.dgid = { 0x20, 1, 0x0d, 0xb8, [15] = 2 },
		.traffic_class = 0x20,
		.flow_label = 0x12345,
		.hop_limit = 63,
	};
	struct wire_packet p = send_with_imm;

	ck_assert_uint_eq(wire_build_infiniband(&lrh, NULL, &p, out),
			  sizeof(send_local));
	ck_assert_mem_eq(out, send_local, sizeof(send_local));
	ck_assert_uint_eq(wire_build_infiniband(&lrh, &grh, &p, out),
			  sizeof(send_global));
	ck_assert_mem_eq(out, send_global, sizeof(send_global));
	p.length = WIRE_MAX_PAYLOAD;
	ck_assert_uint_eq(wire_build_infiniband(&lrh, &grh, &p, out),
			  sizeof(send_global) - 8 + WIRE_MAX_PAYLOAD);
	p.length++;
	ck_assert_uint_eq(wire_build_infiniband(&lrh, &grh, &p, out), 0);
	p.length = 0;
	p.bth.opcode = 0xff;
	ck_assert_uint_eq(wire_build_infiniband(&lrh, NULL, &p, out), 0);
}
END_TEST

START_TEST(over_ipv6)
{
	const struct wire_path path = {
		.sgid = { 0xfe, 0x80, [8] = 0x50, 0x54, 0, 0xff, 0xfe, 0x12,
			  0x34, 0x56 },
		.dgid = { 0x20, 1, 0x0d, 0xb8, [15] = 2 },
		.traffic_class = 0x20,
		.flow_label = 0x12345,
		.hop_limit = 63,
		.source_port = wire_port_ud(1),
	};
	const struct wire_packet p = {
		.bth = { .opcode = WIRE_UD | WIRE_SEND_ONLY,
			 .pkey = 0xffff,
			 .qpn = 1,
			 .psn = 7 },
		.deth = { .qkey = 0x80010000, .qpn = 1 },
		.length = 4,
		.payload = "\1\2\3\4",
		.known = 4,
	};

	ck_assert_uint_eq(wire_build(&path, &p, out), sizeof(datagram_ipv6));
	ck_assert_mem_eq(out, datagram_ipv6, sizeof(datagram_ipv6));
}
END_TEST

/* Reference implementation of the CRC, bit by bit. */
static uint32_t slow(uint32_t crc, const uint8_t *p, size_t n)
{
	unsigned int bit;

	for (crc = ~crc; n--; p++)
		for (crc ^= *p, bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	return ~crc;
}

/*
 * Each implementation that this CPU supports, and the selected one, for all
 * lengths of packets at several alignments.
 */
START_TEST(crc_implementations)
{
	wire_crc32_fn *const fn = _i < WIRE_CRC32_IMPLS ? wire_crc32_with(_i) :
							  wire_crc32;
	static uint8_t bytes[WIRE_MAX_BYTES + 64];
	uint32_t sum[WIRE_MAX_BYTES + 1];
	size_t n, at;

	if (!fn)
		return;
	for (n = 0; n < sizeof(bytes); n++)
		bytes[n] = (uint8_t)(n * n >> 3 ^ n);
	for (at = 0; at < 64; at += at < 4 ? 1 : 15) {
		sum[0] = 0x12345678;
		for (n = 1; n <= WIRE_MAX_BYTES; n++)
			sum[n] = slow(sum[n - 1], bytes + at + n - 1, 1);
		for (n = 0; n <= WIRE_MAX_BYTES; n++)
			ck_assert_msg(fn(sum[0], bytes + at, n) == sum[n],
				      "way %d, %zu bytes at %zu", _i, n, at);
	}
	ck_assert_uint_eq(fn(0, bytes, 300), slow(0, bytes, 300));
}
END_TEST

/*
 * Fields that routers may change are not covered by the ICRC, and all others
 * are.
 */
START_TEST(icrc_coverage)
{
	static const uint8_t routers[] = { 1, 8, 10, 11, 26, 27, 32 };
	const size_t n =
		sizeof(send_ipv4) - WIRE_ETHERNET_BYTES - WIRE_ICRC_BYTES;
	uint32_t icrc;
	size_t i;

	memcpy(out, send_ipv4 + WIRE_ETHERNET_BYTES, n);
	icrc = wire_icrc(out, n);
	for (i = 0; i < n; i++) {
		out[i] ^= 2;
		ck_assert_int_eq(wire_icrc(out, n) == icrc,
				 memchr(routers, (int)i, sizeof(routers)) !=
					 NULL);
		out[i] ^= 2;
	}
}
END_TEST

/* Payload bytes that are not known are zero.  The pad completes a word. */
START_TEST(payloads)
{
	struct wire_packet p = {
		.bth.opcode = WIRE_UC | WIRE_SEND_MIDDLE,
		.payload = "abcdefgh",
	};
	const size_t headers = WIRE_ETHERNET_BYTES + WIRE_IPV4_BYTES +
			       WIRE_UDP_BYTES + WIRE_BTH_BYTES;
	struct wire_bth bth;
	size_t n;

	for (p.length = 0; p.length <= WIRE_MAX_PAYLOAD; p.length++) {
		p.known = p.length / 2 < 8 ? p.length / 2 : 8;
		memset(out, 0xee, sizeof(out));
		n = wire_build(&ipv4, &p, out);
		ck_assert_uint_eq(n, headers + ((p.length + 3) & ~3u) +
					     WIRE_ICRC_BYTES);
		wire_get_bth(&bth, out + headers - WIRE_BTH_BYTES);
		ck_assert_uint_eq((p.length + bth.pad) % 4, 0);
		ck_assert_mem_eq(out + headers, p.payload, p.known);
		ck_assert_mem_eq(out + headers + p.known, zeros,
				 p.length + bth.pad - p.known);
	}
	ck_assert_uint_eq(wire_build(&ipv4, &p, out), 0);
}
END_TEST

/*
 * Headers that were written are read back, and no byte after them is written.
 */
START_TEST(round_trips)
{
	const struct wire_bth bth = { 0x81,	true,	true,	 3,
				      9,	0xfffe, true,	 true,
				      0x123456, true,	0xabcdef };
	const struct wire_atomiceth atomic = { 0x0123456789abcdefull,
					       0x89abcdef, 1ull << 63, 7 };
	const struct wire_aeth aeth = { 0x62, 0xfffffe };
	const struct wire_feth feth = { 1, 2 };
	struct wire_atomiceth atomic_read;
	struct wire_aeth aeth_read;
	struct wire_feth feth_read;
	struct wire_bth read;
	const uint8_t *from = out;
	uint8_t *to;

	memset(out, 0xee, sizeof(out));
	to = wire_put_bth(&bth, out);
	to = wire_put_atomiceth(&atomic, to);
	to = wire_put_aeth(&aeth, to);
	to = wire_put_feth(&feth, to);
	ck_assert_uint_eq(*to, 0xee);
	from = wire_get_bth(&read, from);
	ck_assert(read.opcode == 0x81 && read.solicited && read.migrated &&
		  read.pad == 3 && read.version == 9 && read.pkey == 0xfffe &&
		  read.fecn && read.becn && read.qpn == 0x123456 &&
		  read.ack_request && read.psn == 0xabcdef);
	from = wire_get_atomiceth(&atomic_read, from);
	ck_assert(atomic_read.addr == atomic.addr &&
		  atomic_read.rkey == atomic.rkey &&
		  atomic_read.swap_add == atomic.swap_add &&
		  atomic_read.compare == atomic.compare);
	from = wire_get_aeth(&aeth_read, from);
	ck_assert(aeth_read.syndrome == 0x62 && aeth_read.msn == 0xfffffe);
	from = wire_get_feth(&feth_read, from);
	ck_assert(feth_read.level == 1 && feth_read.type == 2);
	ck_assert_ptr_eq(from, to);
}
END_TEST

START_TEST(opcodes)
{
	struct wire_packet p = { .bth.qpn = 1 };
	unsigned int opcode, some = 0;

	for (opcode = 0; opcode < 256; opcode++) {
		p.bth.opcode = (uint8_t)opcode;
		ck_assert_int_eq(!wire_parts(p.bth.opcode),
				 !wire_build(&ipv4, &p, out));
		some += !!wire_parts(p.bth.opcode);
	}
	/* RC and XRC have 25 each, UC 12, UD 2, and there is CNP */
	ck_assert_uint_eq(some, 65);
	ck_assert_uint_eq(wire_parts(WIRE_UC | WIRE_ACKNOWLEDGE), 0);
	ck_assert_uint_eq(wire_parts(WIRE_XRC | WIRE_ATOMIC_ACKNOWLEDGE),
			  WIRE_HAS(AETH) | WIRE_HAS(ATOMICACK));
	ck_assert_uint_eq(wire_parts(WIRE_XRC | WIRE_READ_REQUEST),
			  WIRE_HAS(XRCETH) | WIRE_HAS(RETH));
}
END_TEST

START_TEST(addresses)
{
	static const uint8_t group[16] = { [10] = 0xff, 0xff, 239, 129, 2, 3 };
	static const uint8_t group_v1[16] = { 0xff, 0x0e, [10] = 0xff, 0xff,
					      239,  1,	  2,	       3 };
	static const uint8_t all_nodes[16] = { 0xff, 2, [15] = 1 };

	ck_assert_uint_eq(wire_mac(group), 0x01005e010203);
	ck_assert(wire_gid_is_ipv4(group_v1) && wire_gid_is_group(group_v1));
	ck_assert_uint_eq(wire_mac(all_nodes), 0x333300000001);
	ck_assert(!wire_gid_is_group(ipv4.sgid) && wire_gid_is_ipv4(ipv4.sgid));
	/* the source port of rxe's connection manager */
	ck_assert_uint_eq(wire_port_ud(1), 55410);
	ck_assert_uint_eq(wire_port(0x2002, 0x2003), wire_port(0x2003, 0x2002));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("wire");

	add(s, crc);
	add_loop(s, crc_implementations, WIRE_CRC32_IMPLS + 1);
	add(s, over_ipv4);
	add(s, over_ipv6);
	add(s, over_infiniband);
	add(s, icrc_coverage);
	add(s, payloads);
	add(s, round_trips);
	add(s, opcodes);
	add(s, addresses);
	return run_suite(s);
}
