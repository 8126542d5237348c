/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Does the kernel know the Ethernet address that packets for a GID need?  If
 * not it is made to ask for it, by a datagram: whoever sends before that has
 * his packets wait behind a question that may get lost, and is asked again only
 * a second later.  Anybody may use this; nothing is kept between calls.
 *
 * Functions return 0 or -errno, 0 as well if it cannot be found out.
 */
#pragma once

#include <stdint.h>

/*
 * For packets from `from`, an address of this host; interface: of link-local
 * ones, else 0.  0: it is known, or none is needed (this host, a group, a link
 * without Ethernet).  EINPROGRESS: it was asked for; look again later, which
 * asks again if there was no answer.  ENETUNREACH and others: there is no way.
 */
int neighbour_find(const uint8_t gid[16], const uint8_t from[16],
		   uint32_t interface);

/* Waits for the answer.  ETIMEDOUT: there was none for so long. */
int neighbour_wait(const uint8_t gid[16], const uint8_t from[16],
		   uint32_t interface, uint32_t timeout_ms);
