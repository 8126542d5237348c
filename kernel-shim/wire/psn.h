/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Arithmetic of packet sequence numbers, PSNs: serial numbers of 24 bits,
 * which wrap (IB 9.7.1).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/transport.h"

/* Half of all PSNs precede a PSN, the other half follow it (or are equal). */
#define WIRE_PSN_HALF 0x800000u

static inline uint32_t wire_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & WIRE_PSN_MASK;
}

/* Return a - b, from -2^23 to 2^23 - 1; negative if a precedes b. */
static inline int32_t wire_psn_minus(uint32_t a, uint32_t b)
{
	const uint32_t d = (a - b) & WIRE_PSN_MASK;

	return (int32_t)(d ^ WIRE_PSN_HALF) - (int32_t)WIRE_PSN_HALF;
}

/* Return whether a precedes b. */
static inline bool wire_psn_before(uint32_t a, uint32_t b)
{
	return wire_psn_minus(a, b) < 0;
}
