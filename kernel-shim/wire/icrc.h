/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The invariant CRC (IB 7.8.1, annex A17): a CRC-32 over the packet, in which
 * what routers change counts as ones.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Ethernet's CRC-32 of what comes next; the first crc is 0. */
uint32_t wire_crc32(uint32_t crc, const void *bytes, size_t n);

/*
 * Of the n bytes from the IP header on, which end before the ICRC; there are
 * an IP header, a UDP header and a BTH in them, or a GRH and a BTH.  It goes
 * out with its lowest byte first.
 */
uint32_t wire_icrc(const uint8_t *ip, size_t n);
