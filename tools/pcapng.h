/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Writing pcapng (draft-ietf-opsawg-pcapng): Ethernet packets of one interface,
 * with times in ns and comments.  Whether it could be written ferror() says.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void pcapng_begin(FILE *to, const char *interface, const char *description);

/* Since 1970; comment: NULL, or a text. */
void pcapng_packet(FILE *to, uint64_t ns, const void *bytes, size_t n,
		   const char *comment);
/* Of `all` bytes that it had n are there. */
void pcapng_part(FILE *to, uint64_t ns, const void *bytes, size_t n, size_t all,
		 const char *comment);
