// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Parsing of packets: a packet that was built is parsed, and all others are
 * refused.
 */
#include <stdlib.h>

#include "unit_base.h"
#include "wire/icrc.h"
#include "wire/parse.h"
#include "wire/psn.h"

static const struct wire_path ipv4 = {
	.sgid = { [10] = 0xff, 0xff, 192, 168, 77, 1 },
	.dgid = { [10] = 0xff, 0xff, 192, 168, 77, 2 },
	.traffic_class = 0x10,
	.hop_limit = 64,
	.ip_id = 258,
	.source_port = 50000,
};
static const struct wire_path ipv6 = {
	.sgid = { 0xfe, 0x80, [15] = 1 },
	.dgid = { 0xfd, 0, [15] = 2 },
	.traffic_class = 0x13,
	.hop_limit = 3,
	.flow_label = 0xabcde,
	.source_port = 50001,
};

static uint8_t out[WIRE_MAX_BYTES], payload[WIRE_MAX_PAYLOAD];

/*
 * Return a copy of @n bytes after which no byte may be read.  The caller
 * frees it.
 */
static uint8_t *alone(const uint8_t *from, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, from, n);
	return copy;
}

static enum wire_refusal parse(struct wire_packet *p, const uint8_t *bth,
			       size_t n)
{
	uint8_t *copy = alone(bth, n);
	enum wire_refusal r = wire_parse(p, copy, n);

	if (!r && p->payload) /* point into the caller's buffer */
		p->payload = bth + ((const uint8_t *)p->payload - copy);
	free(copy);
	return r;
}

static enum wire_refusal parse_ip(struct wire_path *path, struct wire_packet *p,
				  const uint8_t *ip, size_t n)
{
	uint8_t *copy = alone(ip, n);
	enum wire_refusal r = wire_parse_ip(path, p, copy, n);

	free(copy);
	return r;
}

/* Return a packet with nonzero values in all fields of all headers. */
static struct wire_packet full(uint8_t opcode)
{
	struct wire_packet p = {
		.bth = { opcode, true, true, 0, 0, 0x8001, true, true, 0x654321,
			 true, 0xfedcba },
		.deth = { 0x89abcdef, 0x123456 },
		.xrceth = { 0xabcdef },
		.feth = { 3, 9 },
		.reth = { 0xfedcba9876543210, 0x87654321, 0x80000001 },
		.atomiceth = { 1ull << 63 | 1, 0x87654321, ~0ull - 1, ~0ull },
		.aeth = { 0x62, 0xffffff },
		.atomicack = { 0x8000000000000001 },
		.immdt = { 0x80000001 },
		.ieth = { 0x80000002 },
		.payload = payload,
	};

	return p;
}

static void expect_same(const struct wire_packet *a,
			const struct wire_packet *b)
{
	const unsigned int parts = wire_parts(a->bth.opcode);
	uint8_t x[WIRE_MAX_TRANSPORT], y[WIRE_MAX_TRANSPORT];
	const uint8_t *end = wire_put_transport(a, x);

	ck_assert_int_eq(end - x, wire_put_transport(b, y) - y);
	ck_assert_mem_eq(x, y, (size_t)(end - x));
	/* a header that the opcode does not have is zero */
#define HEADER(name, NAME, bytes)                                           \
	if (!(parts & WIRE_HAS(NAME)))                                      \
		ck_assert_mem_eq(&b->name, &(struct wire_packet){ 0 }.name, \
				 sizeof(b->name));
	WIRE_EXTENSIONS(HEADER)
#undef HEADER
}

START_TEST(built_and_parsed)
{
	const struct wire_path *const paths[] = { &ipv4, &ipv6 };
	const struct wire_path *path = paths[_i & 1];
	const uint8_t opcode = (uint8_t)(_i >> 1);
	const bool has = wire_parts(opcode) & WIRE_HAS(PAYLOAD);
	const bool fixed = (opcode & 0x1f) == WIRE_ATOMIC_WRITE;
	struct wire_packet p = full(opcode), q;
	struct wire_path read;
	size_t n;

	if (!wire_parts(opcode))
		return;
	for (p.length = fixed ? 8 : 0; p.length <= (has ? 37u : 0u);
	     p.length++) {
		if (fixed && p.length > 8)
			break;
		p.known = p.length;
		n = wire_build(path, &p, out) - WIRE_ETHERNET_BYTES;
		/* a short frame has padding at its end */
		ck_assert_int_eq(parse_ip(&read, &q, out + WIRE_ETHERNET_BYTES,
					  n + (p.length & 1)),
				 WIRE_TAKEN);
		q.payload = payload; /* the copy was freed */
		expect_same(&p, &q);
		ck_assert_uint_eq(q.length, p.length);
		ck_assert_uint_eq(q.known, p.length);
		ck_assert_mem_eq(&read, path, sizeof(read));
	}
}
END_TEST

/* The pad count and the opcode's headers are checked against the length. */
START_TEST(lengths)
{
	struct wire_packet p = full((uint8_t)_i), q;
	const unsigned int parts = wire_parts(p.bth.opcode);
	const bool fixed = (_i & 0x1f) == WIRE_ATOMIC_WRITE;
	const size_t headers = WIRE_BTH_BYTES + wire_parts_bytes(parts);
	unsigned int pad;
	size_t n;

	if (!parts) {
		wire_put_bth(&p.bth, out);
		ck_assert_int_eq(parse(&q, out, 64), WIRE_OPCODE);
		return;
	}
	p.length = 8;
	wire_put_transport(&p, out);
	for (n = 0; n < headers; n++)
		ck_assert_int_eq(parse(&q, out, n),
				 n >= WIRE_BTH_BYTES && n % 4 ? WIRE_UNEVEN :
								WIRE_SHORT);
	ck_assert_int_eq(parse(&q, out, headers),
			 fixed ? WIRE_SHORT : WIRE_TAKEN);
	for (n = headers; n < headers + 12; n++)
		for (pad = 0; pad < 4; pad++) {
			enum wire_refusal want = WIRE_TAKEN;

			field_put(out, 10, 2, pad);
			if (n % 4)
				want = WIRE_UNEVEN;
			else if (!(parts & WIRE_HAS(PAYLOAD)))
				want = n > headers ? WIRE_LONG :
				       pad	   ? WIRE_PAD :
						     WIRE_TAKEN;
			else if (pad > n - headers)
				want = WIRE_PAD;
			else if (fixed && n < headers + 8)
				want = WIRE_SHORT;
			else if (fixed && pad)
				want = WIRE_LONG;
			ck_assert_int_eq(parse(&q, out, n), want);
			if (!want)
				ck_assert_uint_eq(q.length, n - headers - pad);
		}
}
END_TEST

START_TEST(longest_packets)
{
	struct wire_packet p = full(WIRE_UC | WIRE_SEND_MIDDLE), q;
	uint8_t *big = calloc(1, WIRE_MAX_BYTES + 64);

	ck_assert_ptr_nonnull(big);
	p.length = p.known = WIRE_MAX_PAYLOAD;
	wire_put_transport(&p, big);
	ck_assert_int_eq(wire_parse(&q, big, WIRE_BTH_BYTES + 4096),
			 WIRE_TAKEN);
	ck_assert_ptr_eq(q.payload, big + WIRE_BTH_BYTES);
	ck_assert_int_eq(wire_parse(&q, big, WIRE_BTH_BYTES + 4100), WIRE_LONG);
	field_put(big, 12, 4, 1);
	ck_assert_int_eq(wire_parse(&q, big, WIRE_BTH_BYTES), WIRE_VERSION);
	free(big);
}
END_TEST

/* A packet that is refused does not change the results. */
START_TEST(refused_packet_keeps_result)
{
	static const struct {
		unsigned int ipv6, at, value;
	} wrong[] = {
		{ 0, 0, 0x46 }, /* options */
		/* version 5; total length beyond the packet */
		{ 0, 0, 0x55 },
		{ 0, 2, 0xff },
		{ 0, 3, 19 },
		{ 0, 6, 0x60 }, /* more fragments */
		{ 0, 7, 1 },
		{ 0, 9, 6 }, /* TCP */
		{ 0, 22, 0x13 }, /* another port */
		{ 0, 25, 0xff }, /* UDP's length */
		{ 1, 4, 1 },
		{ 1, 6, 0x1b },
		{ 1, 42, 0x13 },
		{ 1, 45, 0xff },
	};
	const uint8_t opcode = WIRE_RC | WIRE_ACKNOWLEDGE;
	struct wire_packet p = full(opcode), q, before;
	struct wire_path path, path_before;
	uint8_t *ip = out + WIRE_ETHERNET_BYTES;
	unsigned int i;
	size_t n, k;

	memset(&before, 0xee, sizeof(before));
	memset(&path_before, 0xee, sizeof(path_before));
	q = before;
	path = path_before;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		n = wire_build(wrong[i].ipv6 ? &ipv6 : &ipv4, &p, out) -
		    WIRE_ETHERNET_BYTES;
		ip[wrong[i].at] = (uint8_t)wrong[i].value;
		ck_assert_msg(parse_ip(&path, &q, ip, n) == WIRE_NO_ROCE, "%u",
			      i);
	}
	for (i = 0; i < 2; i++) {
		n = wire_build(i ? &ipv6 : &ipv4, &p, out) -
		    WIRE_ETHERNET_BYTES;
		for (k = 0; k < n; k++)
			ck_assert_int_eq(parse_ip(&path, &q, ip, k),
					 WIRE_NO_ROCE);
		ip[n - 1] ^= 1;
		ck_assert_int_eq(parse_ip(&path, &q, ip, n), WIRE_BAD_ICRC);
		ip[n - 1] ^= 1;
		ip[n - 5] ^= 1;
		ck_assert_int_eq(parse_ip(&path, &q, ip, n), WIRE_BAD_ICRC);
	}
	ck_assert_mem_eq(&q, &before, sizeof(q));
	ck_assert_mem_eq(&path, &path_before, sizeof(path));
}
END_TEST

/*
 * The ICRC can be computed, and the IPv4 ID solved for, without the IP
 * header.
 */
START_TEST(icrc_without_ip_header)
{
	struct wire_packet p = full(WIRE_RC | WIRE_WRITE_ONLY);
	const size_t front = WIRE_IPV4_BYTES + WIRE_UDP_BYTES;
	struct wire_solver *solver = malloc(sizeof(*solver));
	struct wire_path path = ipv4;
	struct wire_front f, f6;
	uint8_t *ip = out + WIRE_ETHERNET_BYTES, *bth = ip + front;
	size_t n;
	uint32_t icrc, id, bit, fits = 0;

	ck_assert_ptr_nonnull(solver);
	wire_solver_begin(solver);
	wire_front_begin(&f, &ipv4);
	wire_front_begin(&f6, &ipv6);
	for (p.length = 0; p.length <= WIRE_MAX_PAYLOAD;
	     p.length += p.length < 40 ? 1 : 13) {
		p.known = p.length;
		n = wire_build(&ipv6, &p, out) - WIRE_ETHERNET_BYTES - 48 - 4;
		ck_assert_uint_eq(wire_front_icrc(&f6, 0, ip + 48, n),
				  wire_get_icrc(ip + 48 + n));
		path.ip_id = (uint16_t)(p.length * 40503u);
		n = wire_build(&path, &p, out) - WIRE_ETHERNET_BYTES - front -
		    WIRE_ICRC_BYTES;
		icrc = wire_get_icrc(bth + n);
		ck_assert_uint_eq(wire_front_icrc(&f, path.ip_id, bth, n),
				  icrc);
		ck_assert_int_eq(wire_solve_id(solver, &f, bth, n, icrc),
				 path.ip_id);
		/* a single wrong bit is detected */
		for (bit = 0; bit < 32; bit++)
			ck_assert_int_ne(wire_solve_id(solver, &f, bth, n,
						       icrc ^ 1u << bit),
					 path.ip_id);
	}
	n = WIRE_BTH_BYTES + 16 + 4;
	for (id = 0; id < 0x10000;
	     id += (uint32_t)(0x10000 / turns_of(0x10000))) {
		icrc = wire_front_icrc(&f, (uint16_t)id, bth, n);
		ck_assert_int_eq(wire_solve_id(solver, &f, bth, n, icrc),
				 (int32_t)id);
		/* of other values one in 65536 fits */
		fits += wire_solve_id(solver, &f, bth, n,
				      icrc ^ (id + 1) * 0x9e3779b1u) >= 0;
	}
	ck_assert_uint_lt(fits, 20);
	ck_assert_int_eq(wire_solve_id(solver, &f, bth, 8, 0), -1);
	ck_assert_int_eq(wire_solve_id(solver, &f, bth, 13, 0), -1);
	ck_assert_int_eq(
		wire_solve_id(solver, &f, bth, WIRE_MAX_TRANSPORT + 4, 0), -1);
	free(solver);
}
END_TEST

/*
 * With an unknown IPv4 ID, 16 of the 32 bits of the ICRC are left to check
 * the packet.  They detect each single-bit error in the longest packet: no
 * other ID would cause the same change.
 */
START_TEST(bit_errors_detected)
{
	struct wire_packet p = full(WIRE_RC | WIRE_SEND_ONLY);
	const size_t front = WIRE_IPV4_BYTES + WIRE_UDP_BYTES;
	struct wire_solver *solver = malloc(sizeof(*solver));
	uint8_t *bth = out + WIRE_ETHERNET_BYTES + front;
	struct wire_front f;
	size_t n, i;

	ck_assert_ptr_nonnull(solver);
	wire_solver_begin(solver);
	wire_front_begin(&f, &ipv4);
	p.length = p.known = WIRE_MAX_PAYLOAD;
	n = wire_build(&ipv4, &p, out) - WIRE_ETHERNET_BYTES - front -
	    WIRE_ICRC_BYTES;
	for (i = 0; i < 8 * (n + WIRE_ICRC_BYTES); i++) {
		if (i / 8 == 4) /* BTH byte that routers may change */
			continue;
		bth[i / 8] ^= (uint8_t)(1u << i % 8);
		ck_assert_int_eq(wire_solve_id(solver, &f, bth, n,
					       wire_get_icrc(bth + n)),
				 -1);
		bth[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	free(solver);
}
END_TEST

START_TEST(psns)
{
	static const uint32_t some[] = { 0,	   1,	     0x7fffff,
					 0x800000, 0x800001, 0xffffff };
	unsigned int i;

	ck_assert_uint_eq(wire_psn_add(0xffffff, 1), 0);
	for (i = 0; i < 6; i++) {
		const uint32_t p = some[i];

		ck_assert_int_eq(wire_psn_minus(p, p), 0);
		ck_assert_int_eq(wire_psn_minus(wire_psn_add(p, 1), p), 1);
		ck_assert_int_eq(wire_psn_minus(p, wire_psn_add(p, 1)), -1);
		ck_assert_int_eq(wire_psn_minus(wire_psn_add(p, 0x7fffff), p),
				 0x7fffff);
		ck_assert_int_eq(wire_psn_minus(wire_psn_add(p, 0x800000), p),
				 -0x800000);
		ck_assert(wire_psn_before(p, wire_psn_add(p, 5)));
		ck_assert(!wire_psn_before(wire_psn_add(p, 5), p));
		ck_assert(!wire_psn_before(p, p));
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("parse");
	unsigned int i;

	for (i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 37 + 11);
	add_loop(s, built_and_parsed, 512);
	add_loop(s, lengths, 256);
	add(s, longest_packets);
	add(s, refused_packet_keeps_result);
	add(s, icrc_without_ip_header);
	add(s, bit_errors_detected);
	add(s, psns);
	return run_suite(s);
}
