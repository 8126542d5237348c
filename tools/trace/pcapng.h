/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A writer of the pcapng file format (draft-ietf-opsawg-pcapng): packets of
 * several interfaces, with timestamps in ns and comments, in host byte order.
 * ferror() reports write errors.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Values of the field LinkType, https://www.tcpdump.org/linktypes.html.
 * InfiniBand packets are written as records of the Extensible Record Format:
 * Wireshark does not read LINKTYPE_INFINIBAND, 247.
 */
enum pcapng_link { PCAPNG_ETHERNET = 1, PCAPNG_ERF = 197 };

#define PCAPNG_ERF_BYTES 16
/*
 * Store the header of an ERF record for an InfiniBand packet of @n bytes,
 * from the LRH to the VCRC.  ns: as for pcapng_packet().
 */
void pcapng_put_erf(uint64_t ns, size_t n, uint8_t to[PCAPNG_ERF_BYTES]);

/* Write the section header. */
void pcapng_begin(FILE *to);

/*
 * Write the description of an interface.  Interfaces are numbered from 0, in
 * the order of the calls.
 */
void pcapng_interface(FILE *to, enum pcapng_link link, const char *name,
		      const char *description);

/*
 * Write a packet of an interface that has been written.  ns: time since the
 * Epoch; comment: a text, or NULL.
 */
void pcapng_packet(FILE *to, uint32_t interface, uint64_t ns, const void *bytes,
		   size_t n, const char *comment);
/* The same for a truncated packet: the first n of its `all` bytes. */
void pcapng_part(FILE *to, uint32_t interface, uint64_t ns, const void *bytes,
		 size_t n, size_t all, const char *comment);
