/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The inbox of a QP: responses of other hosts, from the socket owner to the
 * process whose requests they answer.  It is a single-producer
 * single-consumer byte ring; shared/wire.h describes the protocol and its
 * memory order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/qp/qp.h"
#include "owner_slot.h"
#include "wire/packet.h"

/* Return the entry of the arena's wire table, or NULL if the QP has none. */
static inline struct urxe_wire_qp *wire_entry(struct urxe_arena *a,
					      uint32_t qpn)
{
	return load_acquire(&a->qp[qpn_index(qpn)].wire) ?
		       &a->wire[qpn_index(qpn)] :
		       NULL;
}

/* Producer: the socket owner ------------------------------------------- */

/*
 * A consumer in the same thread, which takes responses of READs before they
 * are put into an inbox: completer.h.
 */
struct inbox_bypass {
	/* Returns false if the response is to be put into the inbox. */
	bool (*take)(struct inbox_bypass *b, const struct wire_packet *p,
		     const struct wire_path *path);
	/* Called before any other packet is processed. */
	void (*leave)(struct inbox_bypass *b);
};

/* Fill in *head, except its position.  Returns false if p is damaged. */
bool inbox_answer_head(const struct wire_packet *p,
		       struct urxe_wire_answer *head);
/*
 * Return true if the QP is connected with the host that the packet is from.
 */
bool inbox_accepts(const struct urxe_qp_sh *sh, uint32_t qpn,
		   const struct wire_path *path);

/*
 * Deliver a response (RDMA READ response, ACK, ATOMIC ACK, CNP) from host
 * path->sgid to the inbox of QP qpn of context p.  Wake the QP's owner if it
 * has not polled recently.
 *
 * The caller has called owner_slot_enter() for that QP.  Before the owner is
 * woken owner_slot_exit() is called.  If the inbox is full the packet is lost
 * and counted, which returns true.  Returns false if no QP qpn is connected
 * with that host, or if the QP has sent no request.
 */
bool inbox_put(struct owner_slot *owner_slot, struct urxe_peer *p, uint32_t qpn,
	       const struct wire_packet *packet, const struct wire_path *path);

/*
 * Wait until the QP's owner has processed all responses, and so announced the
 * completions of its sends, at most INBOX_WAIT_NS.
 */
void inbox_wait(struct urxe_peer *p, struct urxe_wire_inbox *in);

/* Consumer: the QP's owner, which holds the QP's lock ------------------ */

/* Allocate the ring, unless it is allocated.  Returns 0 or -errno. */
int inbox_open(struct urxe_context *ctx, struct urxe_wire_inbox *in);
/*
 * The same, for READ responses: replace a small ring by a larger one, if few
 * QPs of the context have one.
 */
int inbox_open_for_read(struct urxe_context *ctx, struct urxe_wire_inbox *in);
/* Return the size of the ring in bytes; 0: there is none. */
uint32_t inbox_bytes(const struct urxe_wire_inbox *in);
/* Discard all records. */
void inbox_clear(struct urxe_wire_inbox *in);

/* A response.  Its payload is one or two pieces inside the ring. */
struct inbox_answer {
	struct urxe_wire_answer head;
	const void *piece[2];
	uint32_t bytes[2];
};

/*
 * Read the oldest response.  Returns false if there is none.  The response
 * stays in the ring until inbox_drop().  A damaged ring is cleared.
 */
bool inbox_peek(struct urxe_context *ctx, struct urxe_wire_inbox *in,
		struct inbox_answer *a);
void inbox_drop(struct urxe_wire_inbox *in, const struct inbox_answer *a);
