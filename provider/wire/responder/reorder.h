/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reorder buffer of the responder: packets whose PSN is later than the
 * expected one.  They are executed when the packets before them have arrived.
 * A requester that retransmits only the missing packet (requester/window.h)
 * thus needs one packet for each that was lost; go-back-N works as before,
 * with duplicates.
 *
 * The buffer is a direct-mapped table that all connections share: a packet
 * replaces the one in its slot, which then counts as lost.  It is private to
 * the socket owner, in one thread.  Its packets are not acknowledged, so they
 * may be lost with the process.
 *
 * A generation number identifies the connection of a packet.  The connection
 * gets a new one when the expected PSN has passed all its packets, and when it
 * may have been reset, so that a packet that is left over is not executed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/receiver.h"

struct request;
struct wire_server;

#define REORDER_SLOTS 512u
/* PSNs after the expected one; the window of a requester is no larger */
#define REORDER_WINDOW 256u

struct reorder_slot {
	uint32_t generation; /* 0: the slot is free */
	struct wire_received in; /* points to bytes */
	uint8_t bytes[WIRE_MAX_TRANSPORT + WIRE_ICRC_BYTES];
};

struct reorder {
	uint32_t generation; /* the last one in use */
	struct reorder_slot slot[REORDER_SLOTS];
};

/* Of one connection. */
struct reorder_state {
	uint32_t generation; /* 0: no packet is buffered */
	uint32_t first, last; /* PSNs: buffered first, latest */
};

/*
 * Buffer the packet of *r, whose PSN is `behind` later than the expected one.
 * Returns false if it is too late for the buffer.
 */
bool reorder_put(struct request *r, int32_t behind);
/*
 * Move the packet with PSN epsn of r's connection to *in.  Returns false if it
 * is not buffered.  in->bth and the payload stay valid until the next
 * reorder_put().
 */
bool reorder_take(struct request *r, uint32_t epsn, struct wire_received *in);
