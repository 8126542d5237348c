/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A writer of the pcapng file format (draft-ietf-opsawg-pcapng): Ethernet
 * packets of one interface, with timestamps in ns and comments, in host byte
 * order.  ferror() reports write errors.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Write the section header and the description of the interface. */
void pcapng_begin(FILE *to, const char *interface, const char *description);

/* Write a packet.  ns: time since the Epoch; comment: a text, or NULL. */
void pcapng_packet(FILE *to, uint64_t ns, const void *bytes, size_t n,
		   const char *comment);
/* The same for a truncated packet: the first n of its `all` bytes. */
void pcapng_part(FILE *to, uint64_t ns, const void *bytes, size_t n, size_t all,
		 const char *comment);
