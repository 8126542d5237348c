/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The implementations of the CRC-32, which crc32.c selects: crc32_x86.c and
 * crc32_arm.c for some CPUs, crc32_tables() for all.
 */
#pragma once

#include "crc32.h"

#if defined(__x86_64__)
#define WIRE_CRC32_X86 1
#elif defined(__aarch64__) && defined(__linux__)
#define WIRE_CRC32_AARCH64 1
#endif

/*
 * Return the state after @n bytes at @p.  The state is the CRC with all bits
 * inverted.  Any @n and any alignment are allowed.
 */
uint32_t crc32_tables(uint32_t state, const uint8_t *p, size_t n);
uint32_t crc32_clmul(uint32_t state, const uint8_t *p, size_t n);
uint32_t crc32_vclmul(uint32_t state, const uint8_t *p, size_t n);
uint32_t crc32_vclmul_512(uint32_t state, const uint8_t *p, size_t n);
uint32_t crc32_arm(uint32_t state, const uint8_t *p, size_t n);
