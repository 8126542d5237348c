// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "wire/icrc.h"
#include "wire/network.h"
#include "wire/transport.h"

/*
 * Bytes of ones at the start of the ICRC in place of InfiniBand's local route
 * header, which RoCE does not have (annex A17)
 */
#define NO_LRH 8

static bool is_ipv4(const uint8_t *ip)
{
	return ip[0] >> 4 == 4;
}

/*
 * Set to ones what routers change: TOS, TTL and checksum of IPv4; traffic
 * class, flow label and hop limit of IPv6 or the GRH.
 */
static void ip_mask(uint8_t *ip)
{
	if (is_ipv4(ip)) {
		ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
	} else {
		ip[0] |= 0x0f;
		ip[1] = ip[2] = ip[3] = ip[7] = 0xff;
	}
}

uint32_t wire_icrc(const uint8_t *ip, size_t n)
{
	uint8_t head[NO_LRH + WIRE_IPV6_BYTES + WIRE_UDP_BYTES +
		     WIRE_BTH_BYTES];
	size_t bth = is_ipv4(ip) ? WIRE_IPV4_BYTES : WIRE_IPV6_BYTES;
	bool udp = is_ipv4(ip) || ip[6] != WIRE_PROTOCOL_BTH;

	bth += udp ? WIRE_UDP_BYTES : 0;
	memset(head, 0xff, NO_LRH);
	memcpy(head + NO_LRH, ip, bth + WIRE_BTH_BYTES);
	ip_mask(head + NO_LRH);
	if (udp) /* UDP checksum */
		head[NO_LRH + bth - 1] = head[NO_LRH + bth - 2] = 0xff;
	head[NO_LRH + bth + 4] = 0xff; /* FECN, BECN, reserved */
	bth += WIRE_BTH_BYTES;
	return wire_crc32(wire_crc32(0, head, NO_LRH + bth), ip + bth, n - bth);
}

/* ------------------------------------------------------- for sockets */

void wire_front_begin(struct wire_front *f, const struct wire_path *path)
{
	const struct wire_udp udp = {
		.from = path->source_port,
		.to = path->port ? path->port : WIRE_PORT,
		.checksum = 0xffff,
	};
	uint8_t *ip = f->bytes + NO_LRH, *end;

	f->ipv4 = wire_path_is_ipv4(path);
	memset(f->bytes, 0xff, NO_LRH);
	end = wire_put_ip(path, 0, ip);
	ip_mask(ip);
	f->n = (uint8_t)(wire_put_udp(&udp, end) - f->bytes);
}

/* Offsets of the length fields of IP and UDP, and of the IPv4 ID */
#define IPV4_BYTES_AT 2
#define IPV4_ID_AT 4
#define IPV6_BYTES_AT 4
#define UDP_BYTES_AT 4

/*
 * Packets of up to this number of bytes are copied after the front: one CRC
 * calculation is faster than two.
 */
#define AT_ONCE 128u

static void put16(uint8_t *to, size_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

uint32_t wire_front_icrc(struct wire_front *f, uint16_t ip_id,
			 const uint8_t *bth, size_t n)
{
	uint8_t head[sizeof(f->bytes) + AT_ONCE];
	const size_t most = n <= AT_ONCE ? n : WIRE_BTH_BYTES;
	const size_t udp = WIRE_UDP_BYTES + n + WIRE_ICRC_BYTES;
	uint8_t *ip = f->bytes + NO_LRH;

	if (f->ipv4) {
		put16(ip + IPV4_BYTES_AT, WIRE_IPV4_BYTES + udp);
		put16(ip + IPV4_ID_AT, ip_id);
	} else {
		put16(ip + IPV6_BYTES_AT, udp);
	}
	put16(f->bytes + f->n - WIRE_UDP_BYTES + UDP_BYTES_AT, udp);
	memcpy(head, f->bytes, sizeof(f->bytes));
	memcpy(head + f->n, bth, most);
	head[f->n + 4] = 0xff; /* FECN, BECN, reserved */
	return wire_crc32(wire_crc32(0, head, f->n + most), bth + most,
			  n - most);
}

/*
 * The solver for the IPv4 ID.  A CRC is a polynomial over GF(2) modulo the
 * generator polynomial of degree 32; its most significant bit is the
 * coefficient of x^0.  If two packets of the same length differ only in the
 * ID, by d(x), their CRCs differ by d(x) x^(32 + 8k), where k is the number
 * of bytes after the ID.  x has an inverse modulo the polynomial, so d(x) is
 * the difference of the CRCs times x^-(32 + 8k).
 */
#define POLYNOMIAL 0xedb88320u
#define ONE 0x80000000u

/* Return a times x. */
static uint32_t times_x(uint32_t a)
{
	return a & 1 ? a >> 1 ^ POLYNOMIAL : a >> 1;
}

/* Return a divided by x. */
static uint32_t by_x(uint32_t a)
{
	return a & ONE ? (a ^ POLYNOMIAL) << 1 | 1 : a << 1;
}

static uint32_t times(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1, b = times_x(b))
		product ^= b & -(a >> 31);
	return product;
}

/* Number of bytes between the ID and the BTH */
#define BEHIND_ID (WIRE_IPV4_BYTES - IPV4_ID_AT - 2 + WIRE_UDP_BYTES)

void wire_solver_begin(struct wire_solver *s)
{
	uint32_t power = ONE;
	size_t word, bit;

	for (bit = 0; bit < 32 + 8 * BEHIND_ID; bit++)
		power = by_x(power);
	for (word = 0; word < sizeof(s->back) / sizeof(*s->back); word++) {
		s->back[word] = power;
		for (bit = 0; bit < 32; bit++)
			power = by_x(power);
	}
}

int32_t wire_solve_id(const struct wire_solver *s, struct wire_front *f,
		      const uint8_t *bth, size_t n, uint32_t icrc)
{
	uint32_t d;

	if (n % 4 || n < WIRE_BTH_BYTES || n > WIRE_MAX_TRANSPORT)
		return -1;
	d = times(icrc ^ wire_front_icrc(f, 0, bth, n), s->back[n / 4]);
	if (d & 0xffff) /* degree > 15: no ID fits */
		return -1;
	return (int32_t)((d >> 16 & 0xff) << 8 | d >> 24);
}
