// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wire responder: dispatch of received packets to QPs.  server.h describes
 * the data structures and the other files.
 *
 * One thread calls these functions: the socket owner's, in socket_owner.c,
 * which creates the server, runs it while the process is the socket owner, and
 * frees it.  socket_owner_start() may create it before it starts that thread.
 * server_disown() runs in the child of a fork.
 *
 * A packet of the socket is one of these:
 *
 *	response	inbox of the requesting QP (inbox.h)
 *	MAD		the connection manager (cm/wire.h)
 *	request		cached connection of the QP (struct cached_qp), then
 *			respond() or deliver_datagram(), with the guard raised
 *
 * What may go wrong:
 *
 *  - A packet that is invalid, or that no QP accepts, is counted and dropped.
 *  - A QP is destroyed or connected anew, or its process dies.  The cached
 *    connection is checked at each use and dropped; entries that are not used
 *    are dropped now and then (server_check_cached()).
 *  - This process is stopped and replaced as the socket owner.
 *    owner_slot_enter() then fails, and the packet is dropped (owner_slot.h).
 *  - server_make() fails: no memory, no free owner slot, or the UDP port is
 *    bound by another program.  socket_owner.c reports it and tries again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "cm/wire.h"
#include "wire/socket/inbox.h"
#include "server.h"

/* The uses that the guard names: receives, their lkeys, and any rkey */
#define USES (GUARD_SEND | GUARD_ANY_RKEY)

/* ------------------------------------------------------- QPs */

/* Forget a context that packets were delivered to. */
static void context_forget(struct urxe_peer **p)
{
	if (*p)
		peer_put(*p);
	*p = NULL;
}

/* Return the context that has QP qpn, or NULL. */
static struct urxe_peer *server_context(struct wire_server *s, uint32_t qpn)
{
	struct urxe_fabric *f = s->me.ctx->fabric;
	struct urxe_peer **p;
	uint32_t slot, gen;

	if (!qpn_lookup(f->dev, qpn, &slot, &gen))
		return NULL;
	p = &s->context[slot];
	if (unlikely(!*p || (*p)->gen != gen)) {
		context_forget(p);
		*p = peer_get(f, slot, gen);
	}
	return *p;
}

static void server_forget(struct wire_server *s, struct cached_qp *v)
{
	reply_forget(s, v);
	conn_drop(&v->conn);
	v->reorder.generation = 0;
}

/*
 * Return true if the QP still has the connection c->want, has wire state, and
 * is of the type that responds to requesters of type @type.
 */
static bool conn_is_wired(const struct urxe_conn *c, enum ibv_qp_type type)
{
	const enum ibv_qp_type mine =
		type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : type;

	/* first: while conn is unchanged, the QP is not replaced */
	return (load_seq_cst(&c->sh->conn) & URXE_CONN_ENDS) == c->want &&
	       load_relaxed(&c->sh->type) == mine && load_acquire(&c->sh->wire);
}

/* Return true if the owner of the QP, or of the SRQ last used, is dead. */
static bool conn_is_of_dead(struct urxe_conn *c)
{
	struct urxe_peer *rx = rx_peer(&c->rx);

	return peer_has_died(c->peer) || (rx && peer_has_died(rx));
}

struct cached_qp *server_find_qp(struct wire_server *s, uint32_t qpn,
				 enum ibv_qp_type type)
{
	struct cached_qp *v = &s->cached[qpn % CACHED_QPS];
	struct urxe_conn *c = &v->conn;

	if (likely(c->peer && c->qpn == qpn)) {
		conn_retarget(&s->me, c, USES);
		if (likely(conn_is_wired(c, type) && !peer_has_died(c->peer)))
			return v;
	}
	server_forget(s, v);
	server_context(s, qpn);
	v->transport = type == IBV_QPT_XRC_SEND ? WIRE_XRC : WIRE_RC;
	s->me.type = type;
	guard_name(s->me.guard, USES);
	if (!conn_open(&s->me, c, qpn, 0))
		return NULL;
	/* a late datagram may arrive after the program freed its buffers */
	c->copy_by_kernel = type == IBV_QPT_UD;
	/* the packet's path identifies the requester */
	c->want = load_seq_cst(&c->sh->conn) & URXE_CONN_ENDS;
	if (URXE_CONN_QPN(c->want) == qpn && conn_is_wired(c, type))
		return v;
	server_forget(s, v);
	return NULL;
}

/* ------------------------------------------------------- packets */

/* IB 9.6.1.1.2: full and limited membership match. */
static bool pkey_fits(uint16_t pkey)
{
	return (pkey & 0x7fff) == 0x7fff;
}

static bool is_answer(uint8_t opcode)
{
	unsigned int transport = opcode & WIRE_TRANSPORT;
	unsigned int op = opcode & ~WIRE_TRANSPORT;

	return opcode == WIRE_CNP_OPCODE ||
	       ((transport == WIRE_RC || transport == WIRE_XRC) &&
		op >= WIRE_READ_FIRST && op <= WIRE_ATOMIC_ACKNOWLEDGE);
}

/* Annex A17.9.2: both GIDs must match the path that the QP's owner set. */
static bool is_from_peer(const struct urxe_conn *c,
			 const struct wire_path *path)
{
	return load_relaxed(&c->sh->roce) == URXE_ROCE_V2 &&
	       shared_gid_is(&c->sh->dgid, path->sgid) &&
	       shared_gid_is(&c->sh->sgid, path->dgid);
}

static void path_back(const struct wire_path *path, struct wire_path *back)
{
	memset(back, 0, sizeof(*back));
	memcpy(back->dgid, path->sgid, 16);
	memcpy(back->sgid, path->dgid, 16);
	/* clear the ECN bits */
	back->traffic_class = path->traffic_class & ~3u;
}

/*
 * If the QP's path word has changed, the QP may have been reset: forget the
 * cached producer index of its receive queue, and the packets in the reorder
 * buffer.
 */
static void server_check_rx(struct cached_qp *v)
{
	struct urxe_conn *c = &v->conn;
	uint32_t now = load_acquire(&c->sh->path);

	if (likely(now == c->path))
		return;
	v->reorder.generation = 0;
	if (!c->rx.shared && c->rx.rq.ring)
		rq_view_forget(&c->rx.rq);
	c->path = now;
}

bool request_find(struct request *r, enum ibv_qp_type type)
{
	const uint32_t qpn = r->p->bth.qpn;
	struct wire_server *s = r->s;
	uint8_t mtu;

	r->v = server_find_qp(s, qpn, type);
	if (!r->v)
		return false;
	r->c = &r->v->conn;
	mtu = load_relaxed(&r->c->sh->path_mtu);
	if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096)
		return false;
	server_check_rx(r->v);
	r->st = &r->c->peer->arena->wire[qpn_index(qpn)].responder;
	r->mtu = 128u << mtu;
	s->me.type = type;
	s->me.qpn = URXE_CONN_DEST(r->c->want);
	return true;
}

static void connected(struct wire_server *s, const struct wire_received *in,
		      enum ibv_qp_type type)
{
	struct request r = { .s = s, .in = in, .p = &in->packet };

	if (!request_find(&r, type) || !is_from_peer(r.c, &in->path) ||
	    !conn_can_receive(r.c, load_seq_cst(&r.c->sh->conn))) {
		server_count(s, URXE_CNT_UNCLAIMED);
		return;
	}
	path_back(&in->path, &r.v->path);
	r.v->path.qpn = r.p->bth.qpn;
	if (unlikely(wire_is_congested(&in->path) || s->overflows))
		reply_congestion(&r);
	r.op = r.p->bth.opcode & ~WIRE_TRANSPORT;
	s->data += r.op != WIRE_READ_REQUEST &&
		   r.c->peer->slot == s->me.ctx->slot;
	respond(&r);
	if (unlikely(r.v->reorder.generation))
		server_resume(s, r.p->bth.qpn, type, NULL);
}

/*
 * Execute the packet that is expected next, if it is buffered.  Store the
 * expected PSN in *epsn.  Returns false if the packet is missing, or must not
 * be executed.
 */
static bool resume_one(struct wire_server *s, struct request *r, uint32_t *epsn)
{
	struct wire_received in;

	*epsn = load_relaxed(&r->c->sh->epsn) & WIRE_PSN_MASK;
	if (reader_of(s, r->c->qpn) || !reorder_take(r, *epsn, &in) ||
	    !owner_slot_enter(&s->owner_slot, r->c->qpn))
		return false;
	r->in = &in;
	r->p = &in.packet;
	r->op = r->p->bth.opcode & ~WIRE_TRANSPORT;
	respond(r);
	return true;
}

void server_resume(struct wire_server *s, uint32_t qpn, enum ibv_qp_type type,
		   const struct reader *held)
{
	const struct wire_packet of_qp = { .bth = { .qpn = qpn } };
	bool executed = held, found;
	struct reader *next;
	struct request r;
	uint32_t epsn;

	do {
		guard_lower(s->me.guard);
		qp_guard_raise(&s->me, USES);
		r = (struct request){ .s = s, .p = &of_qp };
		if (!request_find(&r, type) || !request_is_accepted(&r))
			return;
		found = resume_one(s, &r, &epsn);
		executed |= found;
	} while (found);
	next = reader_of(s, qpn);
	if (next) { /* a buffered READ is in progress */
		next->missed |= held && held->missed;
		next->due |= held && held->due;
		return;
	}
	if (!owner_slot_enter(&s->owner_slot, qpn))
		return;
	/* what is missing now is missing before a packet that has arrived */
	if ((executed && r.v->reorder.generation) || (held && held->missed))
		respond_missing(&r, epsn);
	else if (held && held->due)
		reply_ack_later(&r);
}

/* A response was marked by ECN: send a CNP. */
static void answer_congested(struct wire_server *s,
			     const struct wire_received *in)
{
	struct request r = { .s = s, .p = &in->packet };

	if ((in->packet.bth.opcode & WIRE_TRANSPORT) != WIRE_RC)
		return;
	qp_guard_raise(&s->me, USES);
	if (request_find(&r, IBV_QPT_RC) && is_from_peer(r.c, &in->path) &&
	    request_is_accepted(&r)) {
		path_back(&in->path, &r.v->path);
		r.v->path.qpn = r.p->bth.qpn;
		reply_congestion(&r);
	}
	guard_lower(s->me.guard);
}

static void request(struct wire_server *s, const struct wire_received *in)
{
	switch (in->packet.bth.opcode & WIRE_TRANSPORT) {
	case WIRE_RC:
		connected(s, in, IBV_QPT_RC);
		break;
	case WIRE_UC:
		connected(s, in, IBV_QPT_UC);
		break;
	case WIRE_XRC:
		connected(s, in, IBV_QPT_XRC_SEND);
		break;
	case WIRE_UD:
		deliver_datagram(s, in);
		break;
	}
}

/* Return true if the packet is a MAD for the connection manager. */
static bool is_mad(const struct wire_packet *p)
{
	return p->bth.opcode == (WIRE_UD | WIRE_SEND_ONLY) &&
	       p->bth.qpn == MAD_QPN && p->deth.qkey == MAD_QKEY;
}

/*
 * Return true if the packet is valid and addressed to this port.  Count it
 * otherwise.
 */
static bool packet_counts(const struct wire_server *s,
			  const struct wire_received *in)
{
	const struct urxe_dev *dev = s->me.ctx->fabric->dev;

	if (unlikely(in->refusal)) {
		server_count(s, in->refusal == WIRE_BAD_ICRC ?
					URXE_CNT_ICRC :
					URXE_CNT_MALFORMED);
		return false;
	}
	if (unlikely(wire_is_congested(&in->path)))
		server_count(s, URXE_CNT_ECN_MARKED);
	if (likely(pkey_fits(in->packet.bth.pkey) &&
		   mcast_is_group(in->path.dgid) ==
			   (in->packet.bth.qpn == URXE_MCAST_QPN) &&
		   hca_is_up(&dev->hca[0])))
		return true;
	if (!pkey_fits(in->packet.bth.pkey))
		server_count(s, URXE_CNT_BAD_PKEY);
	server_count(s, URXE_CNT_UNCLAIMED);
	return false;
}

/*
 * Return the QPN for owner_slot_enter(): that of a connected QP, or 0 for UD.
 */
static uint32_t connection(const struct wire_packet *p)
{
	return (p->bth.opcode & WIRE_TRANSPORT) == WIRE_UD ? 0 : p->bth.qpn;
}

static void bypass_leave(const struct wire_server *s)
{
	if (s->bypass)
		s->bypass->leave(s->bypass);
}

/* Return true if the bypass has taken the response. */
static bool bypass_takes(const struct wire_server *s,
			 const struct wire_received *in)
{
	const unsigned int op = in->packet.bth.opcode & ~WIRE_TRANSPORT;

	if (s->bypass && op >= WIRE_READ_FIRST && op <= WIRE_READ_ONLY)
		return s->bypass->take(s->bypass, &in->packet, &in->path);
	bypass_leave(s);
	return false;
}

/* Returns false if no QP expects such a response. */
static bool deliver_answer(struct wire_server *s,
			   const struct wire_received *in)
{
	const uint32_t qpn = in->packet.bth.qpn;
	struct urxe_peer *p = server_context(s, qpn);

	return p && inbox_put(&s->owner_slot, p, qpn, &in->packet, &in->path);
}

static void answer(struct wire_server *s, const struct wire_received *in)
{
	const struct wire_packet *p = &in->packet;

	if (bypass_takes(s, in))
		s->data++;
	else if (!deliver_answer(s, in))
		server_count(s, URXE_CNT_UNCLAIMED);
	if (unlikely(wire_is_congested(&in->path)) &&
	    p->bth.opcode != WIRE_CNP_OPCODE) {
		bypass_leave(s);
		answer_congested(s, in);
	}
}

static void packet(struct wire_server *s, const struct wire_received *in)
{
	const struct wire_packet *p = &in->packet;
	struct urxe_fabric *f = s->me.ctx->fabric;

	if (!packet_counts(s, in) ||
	    !owner_slot_enter(&s->owner_slot, connection(p)))
		return;
	if (is_answer(p->bth.opcode)) {
		s->answers++;
		answer(s, in);
		return;
	}
	bypass_leave(s);
	if (is_mad(p)) {
		cm_wire_receive(f, &in->path, p->payload, p->length);
		return;
	}
	s->writes += p->bth.opcode == (WIRE_RC | WIRE_WRITE_ONLY);
	qp_guard_raise(&s->me, USES);
	request(s, in);
	guard_lower(s->me.guard);
}

/*
 * Count received packets and bytes, and the packets that the socket dropped.
 */
static void server_count_received(struct wire_server *s, uint32_t packets,
				  uint64_t bytes, uint32_t *dropped)
{
	struct urxe_fabric *f = s->me.ctx->fabric;

	counter_add_wire(f, COUNTER_HOLDER, URXE_CNT_RCV_PACKETS, packets);
	counter_add_wire(f, COUNTER_HOLDER, URXE_CNT_RCV_DATA, bytes / 4);
	if (likely(s->receiver.dropped == *dropped))
		return;
	counter_add_wire(f, COUNTER_HOLDER, URXE_CNT_SOCKET_LOST,
			 s->receiver.dropped - *dropped);
	*dropped = s->receiver.dropped;
}

static bool run(struct wire_server *s, const struct wire_socket *from,
		uint32_t *dropped)
{
	struct wire_received in;
	uint32_t packets = 0;
	uint64_t bytes = 0;

	s->batch = s->answers = s->writes = s->data = 0;
	s->receiver.dropped = *dropped; /* reported only if it is not 0 */
	if (wire_receive(&s->receiver, from))
		return false;
	s->overflows = s->receiver.dropped != *dropped;
	for (; wire_received(&s->receiver, &in); packets++) {
		bytes += in.bytes;
		packet(s, &in);
	}
	bypass_leave(s);
	s->batch = packets;
	owner_slot_end_batch(&s->owner_slot);
	server_count_received(s, packets, bytes, dropped);
	reply_acks(s);
	return true;
}

static void continue_reads(struct wire_server *s)
{
	qp_guard_raise(&s->me, USES);
	readers_serve_next(s);
	guard_lower(s->me.guard);
	reply_acks(s);
}

bool server_run(struct wire_server *s)
{
	struct urxe_dev *dev = s->me.ctx->fabric->dev;
	const bool reads = s->readers;

	if (unlikely(groups_changed(&s->groups, dev)))
		groups_follow(&s->groups, dev, s->in.gid);
	if (unlikely(reads))
		continue_reads(s);
	return run(s, &s->in, &s->dropped) || reads;
}

void server_run_groups(struct wire_server *s, const struct pollfd *fds)
{
	struct wire_group *g = s->groups.group;
	uint32_t i;

	for (i = 0; i < s->groups.n; i++)
		if (fds[i].revents)
			run(s, &g[i].socket, &g[i].dropped);
}

/* ------------------------------------------------------- life */

void server_check_cached(struct wire_server *s)
{
	struct urxe_fabric *f = s->me.ctx->fabric;
	struct urxe_conn *c;
	struct urxe_peer *p;
	uint32_t i;

	for (i = 0; i < CACHED_QPS; i++) {
		c = &s->cached[i].conn;
		conn_check(c);
		if (c->peer && conn_is_of_dead(c))
			conn_drop(c);
	}
	for (i = 0; i < URXE_MAX_CTX; i++) {
		p = s->context[i];
		if (p && (peer_is_closed(p) || peer_has_died(p)))
			context_forget(&s->context[i]);
	}
	if (s->groups.n) /* remove the memberships of dead processes */
		fabric_reap(f);
	if (s->groups.missing)
		groups_follow(&s->groups, f->dev, s->in.gid);
}

static int server_listen(struct wire_server *s, const uint8_t gid[16])
{
	const unsigned int flags = WIRE_NONBLOCKING | WIRE_YIELDS;
	int ret = wire_socket_open(&s->in, gid, WIRE_PORT, flags);

	if (ret == -EADDRINUSE && owner_slot_has_others(&s->owner_slot))
		ret = wire_socket_open(&s->in, gid, WIRE_PORT,
				       flags | WIRE_TAKES_OVER);
	return ret;
}

int server_make(struct urxe_context *ctx, const uint8_t gid[16],
		struct wire_server **out)
{
	struct urxe_fabric *f = ctx->fabric;
	struct wire_server *s;
	int ret = -EBUSY;

	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return -ENOMEM;
	if (!owner_slot_take(&s->owner_slot, f, process_id(f)))
		goto err_unmap;
	ret = server_listen(s, gid);
	if (ret)
		goto err_leave;
	ret = wire_socket_open(&s->out, gid, 0, WIRE_SENDS_ONLY);
	if (ret)
		goto err_close;
	wire_receiver_begin(&s->receiver);
	s->me.ctx = ctx;
	s->me.sh = &s->me_sh;
	s->me.guard = &s->owner_slot.sh->guard;
	s->me.guard_group = &s->group;
	/*
	 * This guard is in no group.  A private word that stays GUARD_BUSY
	 * makes guard_raise() skip the store.
	 */
	store_relaxed(&s->group, GUARD_BUSY);
	groups_follow(&s->groups, ctx->fabric->dev, gid);
	*out = s;
	return 0;

err_close:
	wire_socket_close(&s->in);
err_leave:
	owner_slot_release(&s->owner_slot);
err_unmap:
	munmap(s, sizeof(*s));
	return ret;
}

void server_disown(struct wire_server *s)
{
	wire_socket_close(&s->in);
	wire_socket_close(&s->out);
	groups_close(&s->groups);
}

void server_free(struct wire_server *s)
{
	uint32_t i;

	server_disown(s);
	for (i = 0; i < CACHED_QPS; i++)
		conn_drop(&s->cached[i].conn);
	for (i = 0; i < URXE_MAX_CTX; i++)
		context_forget(&s->context[i]);
	owner_slot_release(&s->owner_slot);
	munmap(s, sizeof(*s));
}
