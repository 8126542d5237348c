/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RDMA READs.  A packet may ask for 2 GiB, and others wait meanwhile: so one is
 * answered in portions, of which the first goes out when it comes, and the
 * others by turns, one for each look at the socket (reader.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/responder.h"
#include "wire/packet.h"

struct request;
struct wire_server;

/* A READ of which something is to be answered. */
struct read {
	uint64_t addr; /* of what is left */
	uint32_t left, length; /* bytes; all of it */
	uint32_t rkey, srqn;
	uint32_t first, psn,
		end; /* PSNs: its first, the next, behind its last */
	bool begun;
	bool again; /* it came before: nobody waits for a NAK */
};

static inline bool read_is_done(const struct read *d)
{
	return d->begun && !d->left;
}

/*
 * The READs of a connection that are not answered to their ends.  Meanwhile
 * nothing but READs is taken from there, for whose order they have a place; all
 * else is asked for again when they are done.
 */
#define READERS 64u
#define READS 16u
struct reader {
	uint32_t qpn; /* 0: a place that is free */
	enum ibv_qp_type type; /* of the requester */
	uint64_t want; /* struct urxe_conn.want and path, as they were */
	uint32_t path;
	struct wire_path back;
	bool due; /* an ACK is, then ... */
	bool missed; /* ... or a NAK of what was not taken */
	uint32_t n;
	struct read read[READS]; /* in the order of their PSNs */
};

/* read.c; the guard is up */

/* May what is left be read?  Then *src is it. */
enum response read_access(struct request *r, const struct read *d,
			  struct urxe_seg *src);
/* One portion of it goes out; if all of it did, or it failed, that counts. */
enum response read_portion(struct request *r, struct read *d);
/* It ends where it is. */
void read_refuse(struct request *r, const struct read *d, enum response resp);

/* reader.c */

/* What is left of it waits for its turn.  False: there is no room. */
bool reader_begin(struct request *r, const struct read *d);
/* One more, or one again.  False: there is no room. */
bool reader_put(struct reader *q, const struct read *d);
/* That of a connection; NULL: all is answered. */
struct reader *reader_of(struct wire_server *s, uint32_t qpn);
/*
 * r's packet is so far behind what is expected.  True: it must not be answered
 * before the READs are, and was put off.
 */
bool reader_holds_back(struct request *r, int32_t behind);
/* A portion of one of them; the guard is up. */
void readers_go_on(struct wire_server *s);
