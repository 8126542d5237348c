/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What requests of other hosts meet: who holds the socket does for their
 * requesters what those of this host do for themselves.  He has a QP that is in
 * no context's table and posts nothing, `me`: it gives the engine's functions
 * the guard of his seat and his context.
 *
 *	server.c	which QP a packet is for
 *	respond.c	RC, XRC and UC: is it the next packet?  (IB 9.7.4, 9.8)
 *	request.c	SEND, RDMA WRITE
 *	read.c		RDMA READ: read.h
 *	fetch.c		atomics
 *	place.c		FLUSH, ATOMIC WRITE
 *	shared.c	XRC: which SRQ
 *	deliver.c	UD
 *	reply.c		what is sent back
 *
 * What must outlive the process is in shared/wire.h, all else is here: one
 * server, one thread.
 */
#pragma once

#include "count.h"
#include "engine/qp.h"
#include "engine/responder.h"
#include "groups.h"
#include "read.h"
#include "seat.h"
#include "wire/psn.h"
#include "wire/receiver.h"
#include "wire/sender.h"
#include "wire/socket.h"

/* QPs that one remembers. */
#define SERVED 256u

struct served {
	struct urxe_conn conn;
	struct wire_path path; /* to the requester */
	uint32_t next_due; /* in the server's list, + 1 */
	uint64_t told; /* clock_now() of the last CNP */
	uint8_t transport; /* of what is sent back */
	bool listed; /* it is there ... */
	bool due; /* ... and an ACK of all that was carried out has not gone: */
	uint32_t psn, msn; /* its */
};

struct wire_server {
	struct urxe_qp me;
	_Atomic uint64_t group; /* its guard is in none: always busy */
	struct urxe_qp_sh me_sh; /* nobody's */
	struct wire_seat seat; /* its guard is that of `me` */
	struct wire_socket in;
	struct wire_socket out; /* blocks, and has a port of its own */
	struct wire_groups groups;
	struct served served[SERVED];
	uint32_t due; /* the first one in the list, + 1 */
	struct reader reader[READERS];
	uint32_t readers; /* places that are in use ... */
	uint32_t turn; /* ... and the one that went on last */
	struct wire_sender sender;
	struct wire_receiver receiver;
	uint32_t dropped; /* by in, as it was counted */
};

static inline void server_count(const struct wire_server *s,
				enum urxe_counter which)
{
	count_answer(s->me.ctx->fabric, which);
}

/* A packet of a connection. */
struct request {
	struct wire_server *s;
	struct served *v;
	struct urxe_conn *c;
	struct urxe_wire_responder *st;
	const struct wire_packet *p;
	uint32_t mtu; /* bytes */
	uint32_t op; /* enum wire_opcode */
	uint8_t under_way; /* enum urxe_wire_under_way: before it */
};

/*
 * A server for packets to that address and port, that works for ctx, which
 * stays, in the process that holds the wire.  It takes the port over from one
 * who held it and is stopped.  -errno; -EBUSY: too many are.
 */
int server_make(struct urxe_context *ctx, const uint8_t gid[16],
		struct wire_server **out);
void server_free(struct wire_server *s);
/* After a fork: the sockets are the parent's. */
void server_disown(struct wire_server *s);
/* QPs that are gone are forgotten. */
void server_look_after(struct wire_server *s);
/* Serve what has come; true: there was something. */
bool server_run(struct wire_server *s);
/* The same of groups, where fds (groups_poll) says so. */
void server_run_groups(struct wire_server *s, const struct pollfd *fds);

/* respond.c: the guard is up */
void respond(struct request *r);
/* It was carried out, and n PSNs with it; what is under way now. */
void respond_accept(struct request *r, uint32_t n,
		    enum urxe_wire_under_way under_way);
/* A step that must not be done twice begins; it is over when accepted. */
void respond_step(struct request *r);
void respond_step_undone(struct request *r);

/* What is not carried out: a NAK, after which the QP is at its end, or RNR. */
void respond_refuse(struct request *r, enum response resp);
/* epsn is missing: told once, and then it is waited for (IB 9.7.5.1.4). */
void respond_missing(struct request *r, uint32_t epsn);

/* request.c; RESP_ACK: it is accepted */
enum response request_send(struct request *r);
enum response request_write(struct request *r);
/* Does the QP still hear this requester? */
bool request_is_heard(const struct request *r);
/* The QP is at its end: what a message under way has of its SRQ is flushed. */
void request_abandon(struct request *r);

/* shared.c */
/*
 * XRC: its receives and keys are those of the SRQ that it names; of others
 * there is nothing to do.
 */
enum response shared_turn_to(struct request *r);
/* The same of one that comes again: another message may be under way. */
enum response shared_turn_again(struct request *r);
/* The same of a receive that a message has, which may be gone with its SRQ. */
bool shared_turn_back(struct request *r);

/* read.c, fetch.c; the same, and it is answered */
enum response fetch_read(struct request *r);
enum response fetch_atomic(struct request *r);
/* What came before comes again. */
void fetch_read_again(struct request *r);
void fetch_atomic_again(struct request *r);

/* It is done: whoever asks again is told what was there. */
void fetch_keep(struct request *r, uint64_t original);
/* NULL: it is not known (any more) that this was done. */
const struct urxe_wire_atomic *fetch_kept(const struct request *r);
/* Has the QP a place to keep what comes back (IB 9.7.4.1.4)? */
bool fetch_has_resources(const struct request *r);

/* place.c; as fetch.c's */
enum response place(struct request *r);
void place_again(struct request *r);

/* deliver.c */
void deliver_datagram(struct wire_server *s, const struct wire_received *in);

/* server.c: QP qpn of that type (as of a requester), or NULL; the guard is up
 */
struct served *server_turn_to(struct wire_server *s, uint32_t qpn,
			      enum ibv_qp_type type);

/*
 * The QP that r->p is for, as of a requester of that type: all of *r but what
 * the packet says.  False: there is none.
 */
bool request_find(struct request *r, enum ibv_qp_type type);

/* reply.c */
void reply_ack_later(struct request *r);
void reply_acks(struct wire_server *s);
/* v is forgotten: its ACK goes out now. */
void reply_forget(struct wire_server *s, struct served *v);
/* A packet of it met congestion: the requester is told, now and then. */
void reply_congestion(struct request *r);
/* What is answered with data up to that PSN needs no ACK; what is due beyond it
 * goes on being so. */
void reply_stands_for(struct request *r, uint32_t psn);
void reply_nak(struct request *r, uint8_t syndrome, uint32_t psn);
/*
 * A packet of that opcode, to be filled further; the ACK that was due goes with
 * it.
 */
void reply_begin(struct request *r, uint8_t op, uint32_t psn,
		 struct wire_packet *p);
/* The place of its payload (wire_sender_add). */
uint8_t *reply_add(struct request *r, const struct wire_packet *p);
void reply_flush(struct wire_server *s);
