/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Addresses of RoCE v2: from GIDs and QPNs to those of Ethernet and UDP. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A GID that is an IPv4 address: ::ffff:a.b.c.d, or a group of IPv4. */
bool wire_gid_is_ipv4(const uint8_t gid[16]);
bool wire_gid_is_group(const uint8_t gid[16]);

/* An Ethernet address, in its low 48 bits; where the GID does not tell it, a
 * local one that it always has. */
uint64_t wire_mac(const uint8_t gid[16]);

/* The UDP port that rxe sends from: of a connection, of a datagram's QP. */
uint16_t wire_port(uint32_t qpn, uint32_t peer);
uint16_t wire_port_ud(uint32_t qpn);
