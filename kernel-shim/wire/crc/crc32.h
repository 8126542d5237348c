/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CRC-32 of Ethernet (IEEE 802.3; CRC-32/ISO-HDLC), by the implementation
 * that is fastest on this CPU for the number of bytes.
 * tests/unit/test_wire.c compares the implementations.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Return the CRC of all bytes so far, where @crc is the CRC of those before
 * @bytes; 0 at the start.
 */
uint32_t wire_crc32(uint32_t crc, const void *bytes, size_t n);

/* The implementations, for tests and benchmarks. */
enum wire_crc32_impl {
	WIRE_CRC32_TABLES, /* any CPU: slicing-by-8 */
	WIRE_CRC32_CLMUL, /* x86-64: PCLMULQDQ, registers of 16 bytes */
	WIRE_CRC32_VCLMUL, /* VPCLMULQDQ and AVX2, 32 bytes */
	WIRE_CRC32_VCLMUL_512, /* VPCLMULQDQ and AVX-512, 64 bytes */
	WIRE_CRC32_ARM, /* AArch64: the CRC32 instructions */
	WIRE_CRC32_IMPLS
};
typedef uint32_t wire_crc32_fn(uint32_t crc, const void *bytes, size_t n);
/* Return an implementation, or NULL if this CPU cannot execute it. */
wire_crc32_fn *wire_crc32_with(enum wire_crc32_impl way);
