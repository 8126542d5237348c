/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets that go out together, by one system call if that can be: they are
 * added one by one, and then flushed.  Those of equal size to one place, one
 * after the other, are left to the kernel to cut (GSO).
 *
 * A sender is somebody's own: it has no lock and allocates nothing.  It is big
 * (sizeof), and memory that is zero is an empty one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/icrc.h"
#include "wire/packet.h"
#include "wire/socket.h"

#define WIRE_SENDER_PACKETS 64u

/* What becomes of a packet, where somebody wants a bad cable. */
enum wire_fate {
	WIRE_ARRIVES,
	WIRE_LOST,
	WIRE_DUPLICATED,
	WIRE_LATE, /* behind the next ones that go out */
	WIRE_DAMAGED, /* after its ICRC was made */
};

/* Asked for each packet that is added, by any thread; set before the first one
 * is, and never again.  NULL: all arrive. */
typedef enum wire_fate wire_fate_fn(const struct wire_packet *p);
extern wire_fate_fn *wire_fate;

struct wire_outgoing {
	struct wire_path path;
	uint32_t at, bytes; /* from the BTH to the pad; its ICRC is behind it */
	enum wire_fate fate;
};

struct wire_sender {
	unsigned int n;
	uint32_t used; /* bytes */
	bool no_gso; /* the kernel does not cut what it sends for us */
	bool no_label; /* it does not let us have flow labels */
	/* Since the caller cleared it: packets that went, their bytes from the
	 * BTH to the ICRC, and packets that did not go. */
	struct wire_sent {
		uint32_t packets, lost;
		uint64_t bytes;
	} sent;
	bool late; /* there is one in the place behind the others */
	struct wire_outgoing packet[WIRE_SENDER_PACKETS + 1];
	uint8_t bytes[(WIRE_SENDER_PACKETS + 1) *
		      (WIRE_MAX_TRANSPORT + WIRE_ICRC_BYTES)];
};

static inline bool wire_sender_is_full(const struct wire_sender *s)
{
	return s->n == WIRE_SENDER_PACKETS;
}

/*
 * One more packet.  Returns the place of its payload, p->length bytes, which
 * are copied from p->payload (p->known of them, then zeros) or, if that is
 * NULL, are the caller's to write before it flushes.  NULL: it is full, or it
 * is no packet (wire_build).
 *
 * Of the path sgid and source_port are not looked at: they are the socket's.
 * The traffic class goes as it is, with its ECN bits; a hop limit of 0 is the
 * system's.  A flow label goes unless the system refuses it.
 */
uint8_t *wire_sender_add(struct wire_sender *s, const struct wire_path *path,
			 const struct wire_packet *p);

/* Not the one that was added last, after all. */
void wire_sender_drop(struct wire_sender *s);

/*
 * To the kernel with all of them, in this order; the sender is empty then,
 * whatever is returned.  -errno tells what became of the first one that did not
 * go (EAGAIN: no room, and the socket does not block; EMSGSIZE: the interface's
 * MTU; ENETUNREACH, EPERM ...): that one is lost, as on a wire, and the others
 * are sent all the same.  *sent, if it is not NULL, is how many went.
 */
int wire_sender_flush(struct wire_sender *s, const struct wire_socket *socket,
		      unsigned int *sent);
