/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The wire responder: executes the requests of other hosts.  The socket owner
 * does for their requesters what the requesters of this host do for
 * themselves.  For that it has a private QP, `me`, which is in no context's
 * table and posts nothing.  It supplies the engine's functions with the guard
 * of the owner slot and with the owner's context.
 *
 *	server.c	finds the QP of a packet
 *	roce_respond.c	RC, XRC and UC: PSN check (IB 9.7.4, 9.8)
 *	reorder.c	packets that arrive too early
 *	roce_request.c	SEND, RDMA WRITE
 *	read.c		RDMA READ: read.h
 *	fetch.c		atomics
 *	place.c		FLUSH, ATOMIC WRITE
 *	shared.c	XRC: selects the SRQ
 *	deliver.c	UD
 *	reply.c		responses
 *
 * State that must survive the process is in shared/wire.h.  Everything else
 * is here, used by one thread without a lock.
 */
#pragma once

#include "wire/socket/count.h"
#include "engine/qp/qp.h"
#include "engine/exec/responder.h"
#include "wire/socket/groups.h"
#include "wire/socket/inbox.h"
#include "read.h"
#include "reorder.h"
#include "wire/socket/owner_slot.h"
#include "wire/psn.h"
#include "wire/receiver.h"
#include "wire/sender.h"
#include "wire/socket.h"

/* Number of cached QPs, a direct-mapped cache by QPN. */
#define CACHED_QPS 256u

struct cached_qp {
	struct urxe_conn conn;
	struct wire_path path; /* path to the requester */
	/* next entry in the server's list of due ACKs, index + 1 */
	uint32_t next_due;
	uint64_t cnp_sent_at; /* clock_now() of the last CNP */
	uint8_t transport; /* transport bits of responses */
	bool listed; /* is in the list */
	bool due; /* an ACK of all executed requests is due */
	uint32_t psn, msn; /* PSN and MSN of that ACK */
	struct reorder_state reorder;
};

struct wire_server {
	struct urxe_qp me;
	_Atomic uint64_t group; /* summary word of its guard: always busy */
	struct urxe_qp_sh me_sh; /* private, shared with no process */
	struct owner_slot owner_slot; /* its guard is the guard of `me` */
	struct wire_socket in;
	struct wire_socket out; /* blocking; bound to a port of its own */
	struct wire_groups groups;
	struct cached_qp cached[CACHED_QPS];
	/*
	 * contexts that packets were delivered to, by slot; references, so
	 * that none is mapped anew for each packet
	 */
	struct urxe_peer *context[URXE_MAX_CTX];
	uint32_t due; /* head of the list of due ACKs, index + 1 */
	struct reader reader[READERS];
	uint32_t readers; /* entries in use */
	uint32_t turn; /* the entry served last */
	struct wire_sender sender;
	struct wire_receiver receiver;
	uint32_t dropped; /* packets dropped by `in`, as counted so far */
	/*
	 * the last batch: packets; of these: responses, RDMA WRITEs, and data
	 * for connected QPs of this context
	 */
	uint32_t batch, answers, writes, data;
	bool overflows; /* the socket has dropped packets before this batch */
	struct inbox_bypass *bypass; /* set by the socket owner; or NULL */
	struct reorder reorder;
};

static inline void server_count(const struct wire_server *s,
				enum urxe_counter which)
{
	count_answer(s->me.ctx->fabric, which);
}

/* A packet of a connected QP, in execution. */
struct request {
	struct wire_server *s;
	struct cached_qp *v;
	struct urxe_conn *c;
	struct urxe_wire_responder *st;
	const struct wire_received *in; /* as received, or NULL */
	const struct wire_packet *p;
	uint32_t mtu; /* bytes */
	uint32_t op; /* enum wire_opcode */
	uint8_t under_way; /* enum urxe_wire_under_way, before this packet */
};

/*
 * Create a server for the address and UDP port WIRE_PORT, which works for
 * ctx.  ctx must outlive it, and this process must be the socket owner.  If a
 * stopped process has the port, take it over.  Returns 0 or -errno; -EBUSY:
 * no owner slot is free.
 */
int server_make(struct urxe_context *ctx, const uint8_t gid[16],
		struct wire_server **out);
void server_free(struct wire_server *s);
/* After a fork: close the sockets, which are the parent's. */
void server_disown(struct wire_server *s);
/*
 * Periodic work: drop cached QPs that are destroyed or whose
 * process is dead, and contexts that are closed or dead, remove multicast
 * memberships of dead processes, retry failed joins.
 */
void server_check_cached(struct wire_server *s);
/*
 * Serve the packets in the socket buffer and a portion of the READs in
 * progress.  Returns true if there was something to do.
 */
bool server_run(struct wire_server *s);
/*
 * The same for the multicast sockets that fds (groups_poll) marks as
 * readable.
 */
void server_run_groups(struct wire_server *s, const struct pollfd *fds);

/* roce_respond.c.  Called with the guard raised. */
void respond(struct request *r);
/*
 * Commit the packet as executed: expect the PSN n further, with under_way in
 * progress, clear `step`, and schedule an ACK if one is needed.
 */
void respond_accept(struct request *r, uint32_t n,
		    enum urxe_wire_under_way under_way);
/*
 * Begin a step that must not be repeated.  respond_accept() or
 * respond_step_undone() ends it.
 */
void respond_step(struct request *r);
void respond_step_undone(struct request *r);

/*
 * Refuse a packet: send a NAK and break the QP, or send an RNR NAK.  Nothing
 * is sent for RESP_SILENCE.
 */
void respond_refuse(struct request *r, enum response resp);
/* Send a sequence NAK for epsn, once until epsn advances (IB 9.7.5.1.4). */
void respond_missing(struct request *r, uint32_t epsn);

/* roce_request.c.  RESP_ACK: the packet is committed. */
enum response request_send(struct request *r);
enum response request_write(struct request *r);
/* Return true if the QP still accepts requests of this requester. */
bool request_is_accepted(const struct request *r);
/*
 * The QP is broken: complete the SRQ receive of the message in progress with
 * a flush error.
 */
void request_abandon(struct request *r);

/* shared.c */
/*
 * XRC: use the SRQ that the request names, for its receives and keys.
 * Returns RESP_ACK for other QP types.
 */
enum response shared_use_srq(struct request *r);
/*
 * The same for a duplicate request, during which another message may be in
 * progress.
 */
enum response shared_use_srq_duplicate(struct request *r);
/*
 * The same for the SRQ of the stored receive.  Returns false if that SRQ is
 * gone.
 */
bool shared_use_stored_srq(struct request *r);

/* read.c, fetch.c.  As in roce_request.c; the response is sent, too. */
enum response fetch_read(struct request *r);
enum response fetch_atomic(struct request *r);
/* Answer a duplicate request. */
void fetch_read_duplicate(struct request *r);
void fetch_atomic_duplicate(struct request *r);

/* Store the result of an executed atomic, to answer duplicates. */
void fetch_keep(struct request *r, uint64_t original);
/* Return the stored result for the packet's PSN, or NULL. */
const struct urxe_wire_atomic *fetch_kept(const struct request *r);
/* Return true if the QP has responder resources (IB 9.7.4.1.4). */
bool fetch_has_resources(const struct request *r);

/* place.c.  As in fetch.c. */
enum response place(struct request *r);
void place_duplicate(struct request *r);

/* deliver.c */
void deliver_datagram(struct wire_server *s, const struct wire_received *in);

/*
 * server.c: return the cache entry of QP qpn, or NULL.  type is that of the
 * requester.  Called with the guard raised.
 */
struct cached_qp *server_find_qp(struct wire_server *s, uint32_t qpn,
				 enum ibv_qp_type type);

/*
 * Find the QP of r->p and fill in *r, except for r->op and r->under_way.
 * type is that of the requester.  Returns false if there is no such QP.
 */
bool request_find(struct request *r, enum ibv_qp_type type);
/*
 * Execute the buffered packets of QP qpn from the expected one on.  If there
 * are such packets, and others behind a missing one, send a sequence NAK.
 * @held: the reader that has just ended, if that held packets back: send the
 * NAK or ACK that is due.  @type is the type of the requester.  The guard is
 * raised; it is lowered meanwhile.
 */
void server_resume(struct wire_server *s, uint32_t qpn, enum ibv_qp_type type,
		   const struct reader *held);

/* reply.c */
void reply_ack_later(struct request *r);
void reply_acks(struct wire_server *s);
/* Before v is dropped from the cache: send its due ACK. */
void reply_forget(struct wire_server *s, struct cached_qp *v);
/*
 * A packet of the connection was marked by ECN: send a CNP, at most one in 50
 * us.
 */
void reply_congestion(struct request *r);
/*
 * Cancel the due ACK if a response with data up to PSN psn implies it.  An
 * ACK for a later PSN stays due.
 */
void reply_covers_ack(struct request *r, uint32_t psn);
void reply_nak(struct request *r, uint8_t syndrome, uint32_t psn);
/* Build a response of opcode op in *p, which the caller completes. */
void reply_begin(struct request *r, uint8_t op, uint32_t psn,
		 struct wire_packet *p);
/* Queue a response.  Returns the place of its payload (wire_sender_add). */
uint8_t *reply_add(struct request *r, const struct wire_packet *p);
void reply_flush(struct wire_server *s);
