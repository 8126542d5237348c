/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Ethernet's CRC-32, in the way that is fastest on this CPU. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of what comes next; the first crc is 0. */
uint32_t wire_crc32(uint32_t crc, const void *bytes, size_t n);

/* The ways that there are, for tests and figures. */
enum wire_crc32_way {
	WIRE_CRC32_TABLES, /* anywhere */
	WIRE_CRC32_CLMUL, /* x86-64: PCLMULQDQ, 16 bytes at once */
	WIRE_CRC32_VCLMUL, /* VPCLMULQDQ with AVX2, 32 bytes at once */
	WIRE_CRC32_VCLMUL_512, /* and with AVX-512, 64 bytes at once */
	WIRE_CRC32_ARM, /* AArch64: the CRC32 instructions */
	WIRE_CRC32_WAYS
};
typedef uint32_t wire_crc32_fn(uint32_t crc, const void *bytes, size_t n);
/* NULL: not on this CPU. */
wire_crc32_fn *wire_crc32_by(enum wire_crc32_way way);
