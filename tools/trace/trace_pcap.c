// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Conversion of a trace to pcapng.
 *
 * Records are processed in order, and each produces its packets at once, so
 * the packets are in order and none is stored:
 *
 *   LEFT             the request
 *   WAITS, AGAIN     an RNR NAK or another NAK, if the record has one
 *   ARRIVED, or a
 *   later record     the request again, if it had to wait before
 *   ANSWERED         an ACK, a NAK or a response
 *   CM_SENT          a MAD
 *   PACKET           a packet that was sent or received
 *
 * They are processed twice: the first pass finds the ports that send, whose
 * interfaces precede the packets in the file. It skips WRs of a connection
 * whose ports it has found.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "common/commands.h"
#include "trace_wrs.h"
#include "trace_mad.h"
#include "trace_packets.h"
#include "trace_pcap.h"
#include "trace_ports.h"
#include "trace/packet.h"
#include "trace_print.h"
#include "trace_wire.h"
#include "wire/address.h"
#include "shared/device.h"
#include "wire/icrc.h"
#include "wire/infiniband.h"

#define PKEY 0xffff
#define HOP_LIMIT 64 /* default hop limit of the kernel, for connected QPs */

/* The addresses of packets in one direction. */
struct route {
	bool is_infiniband, has_grh;
	struct wire_path path; /* RoCE, or the GRH */
	struct wire_lrh lrh; /* InfiniBand */
};

/*
 * Attributes with which a QP was connected, and the state of its responder.
 */
struct end {
	bool is_connected;
	/* first pass: the ports of requests and of responses are found */
	bool sends, answers;
	/* the peer is on another host: PACKET records have its packets */
	bool is_remote;
	struct route route;
	uint16_t pkey; /* InfiniBand; 0: not known */
	uint32_t peer, mtu, msn;
	uint32_t rq_psn; /* first PSN that this QP expects */
	/* PSN that the peer expects; known after the first ACK */
	uint32_t expected;
	bool has_expected;
	/* WR that waits for a receive or for a response */
	const struct wr_history *waits;
};

struct pcap {
	FILE *to; /* NULL in the first pass */
	const struct trace_batch *batch;
	struct wr_histories histories;
	struct end *end; /* state of each QP, at index track - 1 */
	/* times a WR of a QP with unknown attributes was sent */
	uint64_t unknown;
	uint16_t ip_id;
	struct ports ports;
	bool no_memory;
	uint64_t wall; /* CLOCK_REALTIME when CLOCK_MONOTONIC was 0, ns */
	uint8_t payload[TRACE_MAX_PAYLOAD];
};

/* ------------------------------------------------------- packets */

static struct port *port_of(struct pcap *o, const struct trace_record *r,
			    const char *device, bool is_infiniband)
{
	struct port *port =
		ports_get(&o->ports, r->thread->fabric, device,
			  is_infiniband ? PCAPNG_ERF : PCAPNG_ETHERNET);

	o->no_memory |= !port;
	return port;
}

#define CAPTURED_MAX (PCAPNG_ERF_BYTES + WIRE_MAX_BYTES)

static size_t infiniband_build(uint64_t ns, const struct route *route,
			       const struct wire_packet *p,
			       uint8_t bytes[CAPTURED_MAX])
{
	size_t n = wire_build_infiniband(&route->lrh,
					 route->has_grh ? &route->path : NULL,
					 p, bytes + PCAPNG_ERF_BYTES);

	if (!n)
		return 0;
	pcapng_put_erf(ns, n, bytes);
	return PCAPNG_ERF_BYTES + n;
}

static size_t roce_build(struct pcap *o, const struct route *route,
			 const struct wire_packet *p,
			 uint8_t bytes[CAPTURED_MAX])
{
	struct wire_path counted = route->path;

	counted.ip_id = o->ip_id++;
	return wire_build(&counted, p, bytes);
}

static void pcap_put(struct pcap *o, const struct trace_record *r,
		     const struct port *port, const struct route *route,
		     const struct wire_packet *p, const char *comment)
{
	const uint64_t ns = o->wall + r->time;
	uint8_t bytes[CAPTURED_MAX];
	size_t n;

	if (!o->to)
		return;
	n = route->is_infiniband ? infiniband_build(ns, route, p, bytes) :
				   roce_build(o, route, p, bytes);
	if (n)
		pcapng_packet(o->to, port->interface, ns, bytes, n, comment);
}

/* Argument of put_of_wr(), the callback of message_request() and the like. */
struct of_wr {
	struct pcap *o;
	const struct trace_record *r;
	const struct wr_history *w;
	const struct port *port; /* that sends */
	const struct route *route;
	const char *what; /* name of the packet, for the comment */
};

/* Append to @text, a buffer of @n bytes including the terminating 0. */
static void __attribute__((format(printf, 3, 4)))
add(char *text, size_t n, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, n - used, format, args);
	va_end(args);
}

static void comment_payload(char *text, size_t n, const struct wire_packet *p)
{
	if (!(wire_parts(p->bth.opcode) & WIRE_HAS(PAYLOAD)) || !p->length)
		return;
	if (p->known >= p->length)
		add(text, n, "; the payload is recorded");
	else if (p->known)
		add(text, n,
		    "; the first %u bytes of the payload are recorded, the others are zeros",
		    p->known);
	else
		add(text, n, "; the payload is not recorded, and is zeros");
}

static void put_of_wr(void *arg, const struct wire_packet *p, uint64_t i,
		      uint64_t n, uint64_t left_out)
{
	const struct of_wr *a = arg;
	const struct trace_thread *t = a->r->thread;
	char text[512] = "";

	add(text, sizeof(text), "%s[%d]%s%s WR 0x%" PRIx64 ": %s", t->program,
	    t->pid, *a->w->qp->on ? " at " : "", a->w->qp->on, a->w->wr_id,
	    a->what);
	if (n > 1)
		add(text, sizeof(text), ", packet %" PRIu64 " of %" PRIu64,
		    i + 1, n);
	comment_payload(text, sizeof(text), p);
	if (left_out)
		add(text, sizeof(text),
		    "; %" PRIu64 " packets before this one are left out",
		    left_out);
	pcap_put(a->o, a->r, a->port, a->route, p, text);
}

/* Take LIDs and service level from a record that has them. */
static void route_take_lids(struct route *route, const struct trace_record *r)
{
	route->lrh = (struct wire_lrh){
		.sl = trace_number(r, "sl") & 15,
		.dlid = (uint16_t)trace_number(r, "dlid"),
		.slid = (uint16_t)trace_number(r, "slid"),
	};
}

static uint16_t pkey_or_default(uint64_t pkey)
{
	return pkey ? (uint16_t)pkey : PKEY;
}

static struct route mad_route(const struct trace_record *r,
			      const struct trace_mad *mad)
{
	struct route route = {
		.path = {
			.traffic_class = mad->traffic_class,
			.flow_label = mad->flow_label,
			.hop_limit = HOP_LIMIT,
			.source_port = wire_port_ud(MAD_QPN),
		},
	};

	memcpy(route.path.sgid, mad->sgid, sizeof(mad->sgid));
	memcpy(route.path.dgid, mad->dgid, sizeof(mad->dgid));
	route_take_lids(&route, r);
	route.is_infiniband = route.lrh.slid;
	return route;
}

/*
 * Write a MAD of the connection manager, from QP 1 to QP 1 of the other port.
 */
static void pcap_mad(struct pcap *o, const struct trace_record *r)
{
	struct trace_mad mad;
	struct route route;
	struct wire_packet p = {
		.bth = { .opcode = WIRE_UD | WIRE_SEND_ONLY,
			 .pkey = pkey_or_default(trace_number(r, "bth_pkey")),
			 .qpn = MAD_QPN },
		.deth = { .qkey = MAD_QKEY, .qpn = MAD_QPN },
		.length = MAD_BYTES,
		.payload = mad.mad,
		.known = MAD_BYTES,
	};
	char text[128], device[TRACE_NAME_ROOM];
	struct port *port;

	if (!trace_mad(r, &mad) || trace_number(r, "other_host"))
		return;
	route = mad_route(r, &mad);
	port = port_of(o, r, trace_name(r, "on", device) ? device : PORT_ONLY,
		       route.is_infiniband);
	if (!port)
		return;
	p.bth.psn = port->psn++ & WIRE_PSN_MASK;
	snprintf(text, sizeof(text), "%s[%d] CM %s", r->thread->program,
		 r->thread->pid, trace_mad_name(r));
	pcap_put(o, r, port, &route, &p, text);
}

/* ------------------------------------------------------- QPs */

static bool ends_make(struct pcap *o)
{
	struct wr_history_qp *qp;
	uint32_t n = 0;

	for (qp = o->histories.qp; qp; qp = qp->next)
		qp->track = ++n;
	free(o->end);
	o->end = calloc(n + 1, sizeof(*o->end));
	return o->end;
}

static struct end *end_of(const struct pcap *o, const struct wr_history_qp *qp)
{
	return &o->end[qp->track - 1];
}

/*
 * The name of the device of @qp, which may be NULL. A fabric of one device has
 * no names, so a QP without a name is unknown if @other, a QP of its fabric,
 * has one.
 */
static const char *device_of(const struct wr_history_qp *qp,
			     const struct wr_history_qp *other)
{
	if (qp && *qp->on)
		return qp->on;
	return *other->on ? PORT_UNKNOWN : PORT_ONLY;
}

static uint32_t mtu_of(uint64_t code)
{
	return code >= IBV_MTU_256 && code <= IBV_MTU_4096 ? 128u << code :
							     1024;
}

static void end_take_route(struct end *e, const struct trace_record *r)
{
	const uint64_t roce = trace_number(r, "roce");
	struct route *route = &e->route;
	struct wire_path *path = &route->path;

	*route = (struct route){
		.is_infiniband = roce >= URXE_IB_LOCAL,
		.has_grh = roce != URXE_IB_LOCAL,
	};
	route_take_lids(route, r);
	if (route->is_infiniband && !route->lrh.slid)
		return;
	if (route->has_grh && (!trace_gid(r, "sgid", path->sgid) ||
			       !trace_gid(r, "dgid", path->dgid)))
		return;
	path->v1 = roce == URXE_ROCE_V1;
	path->traffic_class = (uint8_t)trace_number(r, "traffic_class");
	path->flow_label = trace_number(r, "flow_label") & 0xfffff;
	path->hop_limit = HOP_LIMIT;
	if (route->is_infiniband)
		path->hop_limit = (uint8_t)trace_number(r, "hop_limit");
	e->is_connected = true;
}

static void pcap_modified(struct pcap *o, const struct trace_record *r)
{
	struct wr_history_qp *qp = wr_histories_qp(&o->histories, r, r->qpn);
	uint64_t mask = trace_number(r, "mask");
	struct end *e;

	if (!qp)
		return;
	e = end_of(o, qp);
	if (mask & IBV_QP_STATE && trace_number(r, "state") == IBV_QPS_RESET)
		memset(e, 0, sizeof(*e));
	if (mask & IBV_QP_AV) {
		e->sends = e->answers = false;
		end_take_route(e, r);
		e->is_remote = trace_number(r, "other_host");
	}
	if (mask & IBV_QP_PKEY_INDEX)
		e->pkey = (uint16_t)trace_number(r, "pkey");
	if (mask & IBV_QP_PATH_MTU)
		e->mtu = mtu_of(trace_number(r, "mtu"));
	if (mask & IBV_QP_RQ_PSN)
		e->rq_psn = trace_number(r, "rq_psn") & WIRE_PSN_MASK;
	if (mask & IBV_QP_DEST_QPN) {
		e->peer = (uint32_t)trace_number(r, "peer");
		e->msn = 0;
		e->has_expected = false;
	}
}

/*
 * The PSN that the responder expects, for a NAK of a sequence error. @e is
 * the state of the requester's QP. If no ACK was seen, it is the rq_psn of
 * the peer, or @psn if the trace does not have the peer.
 */
static uint32_t expected_psn(const struct pcap *o, const struct trace_record *r,
			     const struct end *e, uint32_t psn)
{
	const struct wr_history_qp *peer =
		wr_histories_qp(&o->histories, r, e->peer);

	if (e->has_expected)
		return e->expected;
	return peer ? end_of(o, peer)->rq_psn : psn;
}

/* ------------------------------------------------------- WRs */

static bool transport_of(const struct wr_history_qp *qp,
			 enum wire_transport *out)
{
	switch (qp->type) {
	case IBV_QPT_RC:
		*out = WIRE_RC;
		return true;
	case IBV_QPT_UC:
		*out = WIRE_UC;
		return true;
	case IBV_QPT_UD:
		*out = WIRE_UD;
		return true;
	case IBV_QPT_XRC_SEND:
		*out = WIRE_XRC;
		return true;
	}
	return false;
}

/*
 * Whether the first packet of the WR was sent. It was not if the WR failed
 * with a local error.
 */
static bool was_sent(const struct wr_history *w)
{
	if (w->by[STEP_ARRIVED] || !w->by[STEP_ANSWERED])
		return true;
	switch (trace_number(w->by[STEP_ANSWERED], "status")) {
	case IBV_WC_SUCCESS: /* a UD datagram without a receiver */
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return true;
	}
	return false;
}

static void message_headers(struct message *m, const struct trace_record *left,
			    const struct end *e)
{
	struct wire_packet *p = &m->head;
	uint64_t addr = trace_number(left, "remote_addr");
	uint32_t rkey = (uint32_t)trace_number(left, "rkey");

	p->bth.pkey = pkey_or_default(e->pkey);
	p->bth.qpn = e->peer & WIRE_PSN_MASK;
	p->xrceth.srqn = (uint32_t)trace_number(left, "srqn");
	p->reth = (struct wire_reth){ addr, rkey, (uint32_t)m->length };
	p->atomiceth = (struct wire_atomiceth){
		.addr = addr,
		.rkey = rkey,
		.swap_add = trace_number(left, "compare_add"),
	};
	if (m->op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		p->atomiceth.compare = p->atomiceth.swap_add;
		p->atomiceth.swap_add = trace_number(left, "swap");
	}
	p->feth.type = (uint8_t)trace_number(left, "flush_type");
	p->feth.level = (uint8_t)trace_number(left, "flush_level");
	p->immdt.imm = be32toh((uint32_t)trace_number(left, "imm"));
	p->ieth.rkey = (uint32_t)trace_number(left, "invalidate");
}

/*
 * Append recorded payload to the message. Only a prefix without gaps is kept.
 */
static void payload_add(struct pcap *o, const struct trace_data *d,
			struct message *m)
{
	if (d->psn != m->psn || d->offset != m->known ||
	    d->n > sizeof(o->payload) - m->known || d->n > m->length - m->known)
		return;
	memcpy(o->payload + m->known, d->byte, d->n);
	m->known += (uint32_t)d->n;
}

static bool is_of_thread(const struct trace_record *r,
			 const struct trace_record *other)
{
	return r->thread == other->thread;
}

/*
 * Collect the DATA records that follow LEFT in its thread: data that a WR
 * sends.
 */
static void payload_sent(struct pcap *o, const struct trace_record *left,
			 struct message *m)
{
	const struct trace_record *r,
		*end = o->batch->record + o->batch->records;
	struct trace_data d;

	for (r = left + 1; r < end; r++) {
		if (!is_of_thread(r, left))
			continue;
		if (!trace_data(r, &d))
			break;
		payload_add(o, &d, m);
	}
}

/*
 * Collect the DATA records right before ANSWERED in its thread: data that a
 * READ returned.
 */
static void payload_brought(struct pcap *o, const struct trace_record *answer,
			    struct message *m)
{
	const struct trace_record *first = answer, *r = answer;
	struct trace_data d;

	while (r-- > o->batch->record) {
		if (!is_of_thread(r, answer))
			continue;
		if (!trace_data(r, &d))
			break;
		first = r;
	}
	for (r = first; r < answer; r++)
		if (is_of_thread(r, answer) && trace_data(r, &d))
			payload_add(o, &d, m);
}

/*
 * Collect the payload of a request. The word of an ATOMIC WRITE may be in
 * LEFT.
 */
static void payload_find(struct pcap *o, const struct trace_record *left,
			 struct message *m)
{
	uint64_t word;

	payload_sent(o, left, m);
	if (m->op != WR_ATOMIC_WRITE || m->known ||
	    !trace_value(left, "value", &word) || !word)
		return;
	memcpy(o->payload, &word, sizeof(word));
	m->known = sizeof(word);
}

/*
 * Make the message of WR @w. Return false if it sends no packets or was not
 * sent.
 */
static bool message_make(struct pcap *o, const struct wr_history *w,
			 const struct end *e, struct message *m)
{
	const struct trace_record *left = w->by[STEP_LEFT];

	memset(m, 0, sizeof(*m));
	if (!left || !was_sent(w) || !message_has_packets(w->op) ||
	    !transport_of(w->qp, &m->transport))
		return false;
	m->op = w->op;
	m->length = trace_number(left, "length");
	m->mtu = e->mtu ? e->mtu : WIRE_MAX_PAYLOAD;
	m->psn = trace_number(left, "psn") & WIRE_PSN_MASK;
	m->payload = o->payload;
	message_headers(m, left, e);
	/*
	 * solicited event: only for messages that consume a receive (IB
	 * 9.2.3)
	 */
	m->head.bth.solicited = trace_number(left, "solicited") &&
				wr_history_takes_receive(w);
	return true;
}

/*
 * Fill @e with the route and the destination of a datagram, from LEFT. @own is
 * the state of its QP.
 */
static bool datagram_end(const struct trace_record *left, const struct end *own,
			 struct end *e)
{
	struct wire_path *path = &e->route.path;

	memset(e, 0, sizeof(*e));
	e->pkey = own->pkey;
	end_take_route(e, left);
	path->hop_limit = (uint8_t)trace_number(left, "hop_limit");
	if (!path->hop_limit && !e->route.is_infiniband)
		path->hop_limit = HOP_LIMIT;
	path->source_port = wire_port_ud(left->qpn);
	e->peer = (uint32_t)trace_number(left, "peer");
	return e->is_connected;
}

static void request(struct pcap *o, const struct trace_record *r,
		    const struct wr_history *w, const char *what)
{
	struct end *e = end_of(o, w->qp), to = { 0 };
	bool ud = w->qp->type == IBV_QPT_UD;
	struct of_wr a = { .o = o, .r = r, .w = w, .what = what };
	struct message m;

	if (!w->by[STEP_LEFT] || !message_has_packets(w->op) || e->is_remote ||
	    trace_number(w->by[STEP_LEFT], "other_host"))
		return;
	if (ud && datagram_end(w->by[STEP_LEFT], e, &to))
		e = &to;
	if (!w->qp->type || !e->is_connected) {
		o->unknown++;
		return;
	}
	if (!message_make(o, w, e, &m))
		return;
	if (ud) {
		m.head.deth.qkey =
			(uint32_t)trace_number(w->by[STEP_LEFT], "qkey");
		m.head.deth.qpn = w->qp->qpn;
	} else {
		e->route.path.source_port = wire_port(w->qp->qpn, e->peer);
	}
	a.route = &e->route;
	a.port = port_of(o, r, device_of(w->qp, w->qp), e->route.is_infiniband);
	if (!a.port)
		return;
	end_of(o, w->qp)->sends = true;
	payload_find(o, w->by[STEP_LEFT], &m);
	message_request(&m, put_of_wr, &a);
}

/* ------------------------------------------------------- answers */

/*
 * The route of responses to QP @qpn, whose requests have route @there. @peer
 * is the state of the responder's QP, or NULL if the trace does not have it.
 */
static struct route reverse_route(const struct route *there, uint32_t qpn,
				  const struct end *peer)
{
	struct route back = *there;

	/* on InfiniBand the responder may send to another LID of the port */
	if (there->is_infiniband && peer && peer->is_connected &&
	    peer->route.is_infiniband && peer->peer == qpn)
		return peer->route;
	memcpy(back.path.sgid, there->path.dgid, sizeof(back.path.sgid));
	memcpy(back.path.dgid, there->path.sgid, sizeof(back.path.dgid));
	back.lrh.slid = there->lrh.dlid;
	back.lrh.dlid = there->lrh.slid;
	return back;
}

static const char *name_of_answer(const struct wr_history *w)
{
	switch (w->op) {
	case IBV_WR_RDMA_READ:
		return "READ response";
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return "atomic response";
	case WR_FLUSH:
	case WR_ATOMIC_WRITE:
		return "response";
	}
	return "ACK";
}

static void answer(struct pcap *o, const struct trace_record *r,
		   const struct wr_history *w, uint8_t nak)
{
	struct end *e = end_of(o, w->qp);
	const struct wr_history_qp *responder =
		wr_histories_qp(&o->histories, r, e->peer);
	const struct end *peer = responder ? end_of(o, responder) : NULL;
	struct of_wr a = { .o = o, .r = r, .w = w };
	struct route back = reverse_route(&e->route, w->qp->qpn, peer);
	struct message m;

	if (!e->is_connected || e->is_remote || !message_make(o, w, e, &m) ||
	    m.transport == WIRE_UC || m.transport == WIRE_UD)
		return;
	m.head.bth.qpn = w->qp->qpn;
	if (peer && peer->pkey)
		m.head.bth.pkey = peer->pkey;
	a.route = &back;
	a.port = port_of(o, r, device_of(responder, w->qp), back.is_infiniband);
	if (!a.port)
		return;
	e->answers = true;
	if (nak) {
		a.what = (nak & 0x60) == WIRE_RNR_NAK ? "RNR NAK" : "NAK";
		if (nak == WIRE_NAK_SEQUENCE)
			m.psn = expected_psn(o, r, e, m.psn);
		m.msn = e->msn;
		message_nak(&m, nak, put_of_wr, &a);
		return;
	}
	a.what = name_of_answer(w);
	m.msn = ++e->msn;
	if (w->fetched)
		m.head.atomicack.original = trace_number(w->fetched, "old");
	payload_brought(o, r, &m);
	e->expected = (m.psn + message_psns(&m)) & WIRE_PSN_MASK;
	e->has_expected = true;
	message_answer(&m, put_of_wr, &a);
}

static const char *name_of(const struct wr_history *w)
{
	static const char *const names[] = {
		"WRITE",	"WRITE WITH IMM",
		"SEND",		"SEND WITH IMM",
		"READ",		"COMPARE & SWAP",
		"FETCH & ADD",	[9] = "SEND WITH INV",
		[14] = "FLUSH", "ATOMIC WRITE",
	};

	return message_has_packets(w->op) ? names[w->op] : "?";
}

/*
 * If the WR waited for a receive or a response, write its request again: it
 * was retransmitted.
 */
static void put_retransmission(struct pcap *o, const struct trace_record *r,
			       const struct wr_history *w)
{
	struct end *e = end_of(o, w->qp);

	if (e->waits == w)
		request(o, r, w, "retransmission");
	e->waits = NULL;
}

static void answered(struct pcap *o, const struct trace_record *r,
		     const struct wr_history *w)
{
	switch (trace_number(r, "status")) {
	case IBV_WC_SUCCESS:
		put_retransmission(o, r, w);
		answer(o, r, w, 0);
		break;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_OP_ERR:
		put_retransmission(o, r, w);
		if (trace_number(r, "nak"))
			answer(o, r, w, (uint8_t)trace_number(r, "nak"));
		break;
	/* local error: the response could not be stored */
	case IBV_WC_LOC_PROT_ERR:
		if (w->by[STEP_ARRIVED])
			answer(o, r, w, 0);
	}
	end_of(o, w->qp)->waits = NULL;
}

static void waits(struct pcap *o, const struct trace_record *r,
		  const struct wr_history *w)
{
	uint8_t nak = (uint8_t)trace_number(r, "nak");

	put_retransmission(o, r, w);
	if (nak)
		answer(o, r, w, nak);
	end_of(o, w->qp)->waits = w;
}

/* ------------------------------------------------------- real packets */

/*
 * Copy the recorded bytes of a packet, from this record and the ones that
 * continue it. Return the number of bytes up to the first gap.
 */
static uint32_t real_bytes(const struct pcap *o, const struct trace_record *r,
			   uint8_t to[TRACE_PACKET_MAX])
{
	const struct trace_record *end = o->batch->record + o->batch->records;
	const struct trace_record *first = r;
	struct trace_packet p;
	uint32_t n = 0;

	for (; r < end; r++) {
		if (!is_of_thread(r, first))
			continue;
		if (!trace_packet(r, &p) || p.at != n ||
		    p.n > TRACE_PACKET_MAX - n)
			break;
		memcpy(to + n, p.byte, p.n);
		n += p.n;
		if (p.n < TRACE_PACKET_PART)
			break; /* the last record of the packet */
	}
	return n;
}

/*
 * Write a packet that was sent or received. The socket does not report the
 * Ethernet addresses and the UDP checksum: the addresses are derived from the
 * GIDs, and the checksum is 0.
 */
static void pcap_real(struct pcap *o, const struct trace_record *r)
{
	uint8_t bytes[WIRE_MAX_HEADERS + TRACE_PACKET_MAX], *ip, *bth;
	struct trace_packet p;
	const struct port *port;
	char text[256] = "";
	uint32_t n;

	if (!trace_packet(r, &p) || p.at)
		return;
	/* a fabric that exchanges packets with other hosts has one device */
	port = port_of(o, r, PORT_ONLY, false);
	if (!port || !o->to)
		return;
	if (!p.in && !p.path.hop_limit)
		p.path.hop_limit = HOP_LIMIT; /* the default of the system */
	bth = wire_put_network(&p.path, p.bytes, bytes, &ip);
	n = real_bytes(o, r, bth);
	add(text, sizeof(text), "%s[%d] %s this packet; ICRC 0x%08x",
	    r->thread->program, r->thread->pid, p.in ? "received" : "sent",
	    p.icrc);
	if (p.refusal)
		add(text, sizeof(text), "; refused: %s",
		    wire_refusal_name(p.refusal));
	if (n < p.bytes)
		add(text, sizeof(text),
		    "; the payload from byte %u of the packet on is not recorded, and is zeros",
		    n);
	if (n < p.bytes && p.bytes <= TRACE_PACKET_MAX) {
		memset(bth + n, 0, p.bytes - n);
		n = p.bytes;
		wire_put_icrc(p.icrc, bth + n - WIRE_ICRC_BYTES);
	}
	pcapng_part(o->to, port->interface, o->wall + r->time, bytes,
		    (size_t)(bth - bytes) + n, (size_t)(bth - bytes) + p.bytes,
		    text);
}

/* ------------------------------------------------------- records */

static bool ports_are_found(const struct pcap *o,
			    const struct wr_history_qp *qp)
{
	const struct end *e = end_of(o, qp);

	return e->sends &&
	       (e->answers || qp->type == IBV_QPT_UD || qp->type == IBV_QPT_UC);
}

static void pcap_record(struct pcap *o, const struct trace_record *r)
{
	const struct wr_history *w = o->histories.of[r - o->batch->record];

	if (r->what == TRACE_QP_MODIFIED)
		pcap_modified(o, r);
	else if (r->what == TRACE_CM_SENT)
		pcap_mad(o, r);
	else if (r->what == TRACE_PACKET)
		pcap_real(o, r);
	if (!w || w->recv || (!o->to && ports_are_found(o, w->qp)))
		return;
	switch (r->what) {
	case TRACE_LEFT:
		request(o, r, w, name_of(w));
		break;
	case TRACE_ARRIVED:
		put_retransmission(o, r, w);
		break;
	case TRACE_WAITS:
	case TRACE_AGAIN:
		waits(o, r, w);
		break;
	case TRACE_ANSWERED:
		answered(o, r, w);
		break;
	}
}

/* Process all records; @to is NULL in the first pass. */
static void pcap_pass(struct pcap *o, FILE *to)
{
	struct port *port;
	size_t i;

	o->to = to;
	o->unknown = 0;
	for (port = o->ports.first; port; port = port->next)
		port->psn = 0;
	o->no_memory |= !ends_make(o);
	for (i = 0; i < o->batch->records && !o->no_memory; i++)
		pcap_record(o, &o->batch->record[i]);
}

static int pcap_write(struct pcap *o, FILE *to)
{
	pcap_pass(o, NULL);
	if (!o->ports.first)
		o->no_memory |=
			!ports_get(&o->ports, 0, PORT_ONLY, PCAPNG_ETHERNET);
	pcapng_begin(to);
	ports_write(&o->ports, to);
	pcap_pass(o, to);
	return o->no_memory ? fail(1, "no memory") : 0;
}

int trace_pcap(FILE *to, const struct trace_batch *b)
{
	struct pcap *o = calloc(1, sizeof(*o));
	int ret;

	if (!o)
		return fail(1, "no memory");
	o->batch = b;
	if (b->records)
		o->wall = b->record[0].thread->input->wall;
	ret = wr_histories_make(&o->histories, b);
	if (!ret)
		ret = pcap_write(o, to);
	if (o->unknown)
		fail(0,
		     "%" PRIu64
		     " requests have no packets: the attributes of their QPs are not in the trace",
		     o->unknown);
	wr_histories_free(&o->histories);
	ports_free(&o->ports);
	free(o->end);
	free(o);
	return ret;
}
