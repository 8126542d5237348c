// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "crc32_impl.h"

#ifdef WIRE_CRC32_AARCH64
#include <string.h>

/*
 * The CRC32 instructions of AArch64, as inline assembly: <arm_acle.h>
 * declares its functions only if the whole file is compiled for CPUs that
 * have them.
 */
static inline uint32_t crc32_8(uint32_t state, uint64_t v)
{
	__asm__(".arch_extension crc\n\tcrc32x %w0, %w0, %x1"
		: "+r"(state)
		: "r"(v));
	return state;
}

static inline uint32_t crc32_1(uint32_t state, uint8_t v)
{
	__asm__(".arch_extension crc\n\tcrc32b %w0, %w0, %w1"
		: "+r"(state)
		: "r"(v));
	return state;
}

uint32_t crc32_arm(uint32_t state, const uint8_t *p, size_t n)
{
	uint64_t v;

	for (; n >= sizeof(v); n -= sizeof(v), p += sizeof(v)) {
		memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		v = __builtin_bswap64(v);
#endif
		state = crc32_8(state, v);
	}
	for (; n--; p++)
		state = crc32_1(state, *p);
	return state;
}
#endif
