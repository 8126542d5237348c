/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Responder side of RDMA READ.  A READ may request up to URXE_MAX_MSG bytes.
 * To keep other QPs served, the responder sends the response in portions: the
 * first when the request arrives (read.c), the rest round-robin, one portion
 * for each poll of the socket (reader.c).
 *
 * All of this runs in the socket owner's thread.  `struct read` and `struct
 * reader` are private to the process.  If it dies, the requester retransmits
 * the request.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/exec/responder.h"
#include "wire/packet.h"

struct request;
struct wire_server;

/* A READ whose response is not complete. */
struct read {
	uint64_t addr; /* address of the remaining bytes */
	uint32_t left, length; /* bytes remaining; bytes in total */
	uint32_t rkey, srqn;
	uint32_t first, psn, end; /* PSNs: first, next, one past the last */
	bool begun;
	bool duplicate; /* a duplicate request: errors are not NAKed */
};

static inline bool read_is_done(const struct read *d)
{
	return d->begun && !d->left;
}

/*
 * READs in progress of one connection.  Meanwhile only further READs are
 * accepted from that connection and queued in order.  Other packets are put
 * into the reorder buffer, and executed when the READs are complete.
 * Duplicates are dropped, and an ACK or a sequence NAK then answers them.
 */
#define READERS 64u
#define READS 16u
struct reader {
	uint32_t qpn; /* 0: the entry is free */
	enum ibv_qp_type type; /* QP type of the requester */
	uint64_t want; /* struct urxe_conn.want and path at the start */
	uint32_t path;
	struct wire_path back;
	bool due; /* send an ACK when the READs are complete */
	bool missed; /* send a sequence NAK then: a packet was dropped */
	uint32_t n;
	struct read read[READS]; /* in PSN order */
};

/* read.c.  Called with the guard raised. */

/*
 * Check access to the remaining bytes and store them in *src.  Returns
 * RESP_ACK, or why the access is refused.
 */
enum response read_access(struct request *r, const struct read *d,
			  struct urxe_seg *src);
/*
 * Send one portion.  On completion or failure, update the completion
 * counters.
 */
enum response read_portion(struct request *r, struct read *d);
/* Send NAK resp for the next PSN of *d, at which the response ends. */
void read_refuse(struct request *r, const struct read *d, enum response resp);

/* reader.c */

/*
 * Queue the rest of *d for round-robin service.  Returns false if no entry is
 * free.
 */
bool reader_begin(struct request *r, const struct read *d);
/*
 * Queue a further or a repeated READ of the connection.  Returns false if the
 * queue is full.
 */
bool reader_put(struct reader *q, const struct read *d);
/* Return the reader of QP qpn, or NULL if it has no READ in progress. */
struct reader *reader_of(struct wire_server *s, uint32_t qpn);
/*
 * Check whether r's packet must wait for READs in progress.  `behind` is its
 * PSN minus the expected PSN.  Returns true if the packet must not be
 * answered before the READs are complete; it is then buffered or dropped.
 */
bool reader_holds_back(struct request *r, int32_t behind);
/* Send a portion of the next reader's READ.  Called with the guard raised. */
void readers_serve_next(struct wire_server *s);
