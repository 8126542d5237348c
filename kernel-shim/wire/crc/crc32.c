// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "crc32_impl.h"

#ifdef WIRE_CRC32_AARCH64
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

/*
 * The implementation for any CPU is slicing-by-8 (Kounavis and Berry, "A
 * Systematic Approach to Building High Performance, Software-based, CRC
 * Generators", 2005): eight bytes per step, by eight tables.
 *
 * A CRC is linear, so the CRC of a byte is the sum (xor) of the CRCs of its
 * bits.  CRC_k(byte) is the contribution of a byte that k bytes follow, with
 * the reflected polynomial 0xedb88320.  The compiler computes the tables.
 */
#define BIT(byte, i, crc) ((byte) >> (i)&1 ? (crc) : 0u)
#define CRC_0(byte)                                            \
	(BIT(byte, 0, 0x77073096) ^ BIT(byte, 1, 0xee0e612c) ^ \
	 BIT(byte, 2, 0x076dc419) ^ BIT(byte, 3, 0x0edb8832) ^ \
	 BIT(byte, 4, 0x1db71064) ^ BIT(byte, 5, 0x3b6e20c8) ^ \
	 BIT(byte, 6, 0x76dc4190) ^ BIT(byte, 7, 0xedb88320))
#define CRC_1(byte)                                            \
	(BIT(byte, 0, 0x191b3141) ^ BIT(byte, 1, 0x32366282) ^ \
	 BIT(byte, 2, 0x646cc504) ^ BIT(byte, 3, 0xc8d98a08) ^ \
	 BIT(byte, 4, 0x4ac21251) ^ BIT(byte, 5, 0x958424a2) ^ \
	 BIT(byte, 6, 0xf0794f05) ^ BIT(byte, 7, 0x3b83984b))
#define CRC_2(byte)                                            \
	(BIT(byte, 0, 0x01c26a37) ^ BIT(byte, 1, 0x0384d46e) ^ \
	 BIT(byte, 2, 0x0709a8dc) ^ BIT(byte, 3, 0x0e1351b8) ^ \
	 BIT(byte, 4, 0x1c26a370) ^ BIT(byte, 5, 0x384d46e0) ^ \
	 BIT(byte, 6, 0x709a8dc0) ^ BIT(byte, 7, 0xe1351b80))
#define CRC_3(byte)                                            \
	(BIT(byte, 0, 0xb8bc6765) ^ BIT(byte, 1, 0xaa09c88b) ^ \
	 BIT(byte, 2, 0x8f629757) ^ BIT(byte, 3, 0xc5b428ef) ^ \
	 BIT(byte, 4, 0x5019579f) ^ BIT(byte, 5, 0xa032af3e) ^ \
	 BIT(byte, 6, 0x9b14583d) ^ BIT(byte, 7, 0xed59b63b))
#define CRC_4(byte)                                            \
	(BIT(byte, 0, 0x3d6029b0) ^ BIT(byte, 1, 0x7ac05360) ^ \
	 BIT(byte, 2, 0xf580a6c0) ^ BIT(byte, 3, 0x30704bc1) ^ \
	 BIT(byte, 4, 0x60e09782) ^ BIT(byte, 5, 0xc1c12f04) ^ \
	 BIT(byte, 6, 0x58f35849) ^ BIT(byte, 7, 0xb1e6b092))
#define CRC_5(byte)                                            \
	(BIT(byte, 0, 0xcb5cd3a5) ^ BIT(byte, 1, 0x4dc8a10b) ^ \
	 BIT(byte, 2, 0x9b914216) ^ BIT(byte, 3, 0xec53826d) ^ \
	 BIT(byte, 4, 0x03d6029b) ^ BIT(byte, 5, 0x07ac0536) ^ \
	 BIT(byte, 6, 0x0f580a6c) ^ BIT(byte, 7, 0x1eb014d8))
#define CRC_6(byte)                                            \
	(BIT(byte, 0, 0xa6770bb4) ^ BIT(byte, 1, 0x979f1129) ^ \
	 BIT(byte, 2, 0xf44f2413) ^ BIT(byte, 3, 0x33ef4e67) ^ \
	 BIT(byte, 4, 0x67de9cce) ^ BIT(byte, 5, 0xcfbd399c) ^ \
	 BIT(byte, 6, 0x440b7579) ^ BIT(byte, 7, 0x8816eaf2))
#define CRC_7(byte)                                            \
	(BIT(byte, 0, 0xccaa009e) ^ BIT(byte, 1, 0x4225077d) ^ \
	 BIT(byte, 2, 0x844a0efa) ^ BIT(byte, 3, 0xd3e51bb5) ^ \
	 BIT(byte, 4, 0x7cbb312b) ^ BIT(byte, 5, 0xf9766256) ^ \
	 BIT(byte, 6, 0x299dc2ed) ^ BIT(byte, 7, 0x533b85da))

#define OF_4(byte, CRC) \
	CRC(byte), CRC((byte) + 1), CRC((byte) + 2), CRC((byte) + 3)
#define OF_16(byte, CRC)                                               \
	OF_4(byte, CRC), OF_4((byte) + 4, CRC), OF_4((byte) + 8, CRC), \
		OF_4((byte) + 12, CRC)
#define OF_64(byte, CRC)                                                    \
	OF_16(byte, CRC), OF_16((byte) + 16, CRC), OF_16((byte) + 32, CRC), \
		OF_16((byte) + 48, CRC)
#define OF_256(CRC) \
	OF_64(0u, CRC), OF_64(64u, CRC), OF_64(128u, CRC), OF_64(192u, CRC)

static const uint32_t table[8][256] = {
	{ OF_256(CRC_0) }, { OF_256(CRC_1) }, { OF_256(CRC_2) },
	{ OF_256(CRC_3) }, { OF_256(CRC_4) }, { OF_256(CRC_5) },
	{ OF_256(CRC_6) }, { OF_256(CRC_7) },
};

static uint32_t get32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

/* Return the state after eight bytes; the old state is xored into @low. */
static uint32_t eight(uint32_t low, uint32_t high)
{
	return table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^
	       table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
	       table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^
	       table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
}

uint32_t crc32_tables(uint32_t state, const uint8_t *p, size_t n)
{
	for (; n >= 8; n -= 8, p += 8)
		state = eight(state ^ get32(p), get32(p + 4));
	for (; n--; p++)
		state = table[0][(state ^ *p) & 0xff] ^ state >> 8;
	return state;
}

/* ------------------------------------------------------- selection */

static uint32_t by_tables(uint32_t crc, const void *bytes, size_t n)
{
	return ~crc32_tables(~crc, bytes, n);
}

#ifdef WIRE_CRC32_X86
static uint32_t by_clmul(uint32_t crc, const void *bytes, size_t n)
{
	return ~crc32_clmul(~crc, bytes, n);
}

static uint32_t by_vclmul(uint32_t crc, const void *bytes, size_t n)
{
	return ~crc32_vclmul(~crc, bytes, n);
}

static uint32_t by_vclmul_512(uint32_t crc, const void *bytes, size_t n)
{
	return ~crc32_vclmul_512(~crc, bytes, n);
}

static int has_clmul(void)
{
	return __builtin_cpu_supports("pclmul") &&
	       __builtin_cpu_supports("sse4.1");
}

static int has_vclmul(void)
{
	return has_clmul() && __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

static int has_vclmul_512(void)
{
	return has_vclmul() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512vl");
}
#endif

#ifdef WIRE_CRC32_AARCH64
static uint32_t by_arm(uint32_t crc, const void *bytes, size_t n)
{
	return ~crc32_arm(~crc, bytes, n);
}

static int has_arm(void)
{
	return !!(getauxval(AT_HWCAP) & HWCAP_CRC32);
}
#endif

wire_crc32_fn *wire_crc32_with(enum wire_crc32_impl way)
{
	switch (way) {
	case WIRE_CRC32_TABLES:
		return by_tables;
#ifdef WIRE_CRC32_X86
	case WIRE_CRC32_CLMUL:
		return has_clmul() ? by_clmul : NULL;
	case WIRE_CRC32_VCLMUL:
		return has_vclmul() ? by_vclmul : NULL;
	case WIRE_CRC32_VCLMUL_512:
		return has_vclmul_512() ? by_vclmul_512 : NULL;
#endif
#ifdef WIRE_CRC32_AARCH64
	case WIRE_CRC32_ARM:
		return has_arm() ? by_arm : NULL;
#endif
	default:
		return NULL;
	}
}

/*
 * Minimum number of bytes for CLMUL (or the CRC32 instructions), VCLMUL and
 * VCLMUL_512.  For fewer bytes the implementation before it is faster.
 */
#define MIN_CLMUL 16
#define MIN_VCLMUL 256
#define MIN_VCLMUL_512 1024

uint32_t wire_crc32(uint32_t crc, const void *bytes, size_t n)
{
	if (n < MIN_CLMUL)
		return by_tables(crc, bytes, n);
#ifdef WIRE_CRC32_X86
	if (n >= MIN_VCLMUL_512 && has_vclmul_512())
		return by_vclmul_512(crc, bytes, n);
	if (n >= MIN_VCLMUL && has_vclmul())
		return by_vclmul(crc, bytes, n);
	if (has_clmul())
		return by_clmul(crc, bytes, n);
#endif
#ifdef WIRE_CRC32_AARCH64
	if (has_arm())
		return by_arm(crc, bytes, n);
#endif
	return by_tables(crc, bytes, n);
}
