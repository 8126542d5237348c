/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Answers of other hosts, on their way from the holder of the fabric's socket
 * to the process whose requests they answer: shared/wire.h has the protocol.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/qp.h"
#include "seat.h"
#include "wire/packet.h"

/* An entry of the arena's table; NULL: the QP has none. */
static inline struct urxe_wire_qp *wire_entry(struct urxe_arena *a,
					      uint32_t qpn)
{
	return load_acquire(&a->qp[qpn_index(qpn)].wire) ?
		       &a->wire[qpn_index(qpn)] :
		       NULL;
}

/* The holder's --------------------------------------------------------------
 */

/*
 * An answer (RDMA READ response, ACK, ATOMIC ACK, CNP) for QP qpn, which came
 * from path->sgid: to its owner, who is woken if he does not look by himself.
 * False: there is no such QP that is connected there, or it asked for nothing.
 * Without room the packet is lost, and counted.  The caller has entered for that
 * QP (seat.h), and has passed when the owner is woken.
 */
bool inbox_put(struct wire_seat *seat, uint32_t qpn, const struct wire_packet *p,
	       const struct wire_path *path);

/* The owner's, who has the QP's lock -----------------------------------------
 */

/* Have memory for it.  0 or -errno. */
int inbox_open(struct urxe_context *ctx, struct urxe_wire_inbox *in);
/* What is in there is for nobody. */
void inbox_clear(struct urxe_wire_inbox *in);

/* An answer; its payload is in one or two pieces, where the inbox has it. */
struct inbox_answer {
	struct urxe_wire_answer head;
	const void *piece[2];
	uint32_t bytes[2];
};

/* The oldest one; false: there is none.  It stays until inbox_drop(). */
bool inbox_look(struct urxe_context *ctx, struct urxe_wire_inbox *in,
		struct inbox_answer *a);
void inbox_drop(struct urxe_wire_inbox *in, const struct inbox_answer *a);
