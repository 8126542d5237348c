// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "rdmacm.h"
#include "peer.h"
#include "wire/icrc.h"
#include "wire/parse.h"
#include "wire/psn.h"

#define PKEY 0xffff
#define QKEY 0x1234

/* Annex A19: selectivity level MR, and the rights for a placement type */
#define FLUSH_MR 1
#define FLUSH_RIGHTS(type) ((type) * (unsigned int)ACCESS_FLUSH_GLOBAL)

/* ------------------------------------------------------- sending */

/* Rare properties of a packet.  Most of them are errors. */
enum {
	RARE_NOTHING,
	RARE_ICRC,
	RARE_STRANGER, /* from a third host */
	RARE_PKEY,
	RARE_QPN,
	RARE_VERSION,
	RARE_PAD,
	RARE_SHORT,
	RARE_ECN,
	RARE_SRQN,
	RARE_KINDS
};

struct packet {
	struct wire_packet p;
	struct net_packet net;
	uint8_t bytes[WIRE_MAX_BYTES];
	unsigned int rare;
	bool later; /* the host receives it with the next packet */
	const uint8_t *to; /* destination GID; NULL: host.here */
};

static unsigned int rare_of(const struct record *r)
{
	return r->flags & FLAG_RARE ? (uint8_t)r->offset % RARE_KINDS :
				      RARE_NOTHING;
}

static void put_icrc(struct packet *k, size_t n)
{
	struct wire_path path = { .traffic_class = k->net.traffic_class };
	struct wire_front front;

	memcpy(path.sgid, k->net.from, 16);
	memcpy(path.dgid, k->net.to, 16);
	path.source_port = 50000;
	wire_front_begin(&front, &path);
	wire_put_icrc(wire_front_icrc(&front, 7, k->bytes, n) ^
			      (k->rare == RARE_ICRC ? 0x10101 : 0),
		      k->bytes + n);
}

static bool is_answer(uint8_t opcode)
{
	const uint8_t op = opcode & 0x1f;

	return opcode != WIRE_CNP_OPCODE && op >= WIRE_READ_FIRST &&
	       op <= WIRE_ATOMIC_ACKNOWLEDGE;
}

/*
 * Record a response that the requester may accept from now on.  later: the
 * host receives it only with the next packet, so the response may also
 * acknowledge requests that the QP sends until then.
 */
static void answer_noted(struct host_qp *q, const struct wire_packet *p,
			 bool later)
{
	const uint8_t op = p->bth.opcode & 0x1f;
	const uint32_t psn = p->bth.psn, at = (psn - FIRST_PSN) & WIRE_PSN_MASK;
	const bool nak = op == WIRE_ACKNOWLEDGE && p->aeth.syndrome & 0xe0;
	const uint32_t end = wire_psn_add(psn, !nak);

	if (!later && wire_psn_minus(psn, q->sent_high) >= 0)
		return;
	if (wire_psn_minus(end, q->acked) > 0)
		q->acked = end;
	if (op != WIRE_ACKNOWLEDGE && at < 8 * sizeof(q->data))
		q->data[at / 8] |= (uint8_t)(1 << at % 8);
}

static void note_answer(const struct packet *k, size_t n)
{
	struct wire_packet p;
	struct host_qp *q = host.qp;

	if (wire_parse(&p, k->bytes, n))
		return;
	while (q < host.qp + QPS && (!q->qp || q->qp->qp_num != p.bth.qpn))
		q++;
	if (q < host.qp + QPS && is_answer(p.bth.opcode))
		answer_noted(q, &p, k->later);
}

/* Append the ICRC to the n bytes in k->bytes and queue the packet. */
static void packet_put(struct packet *k, size_t n)
{
	memcpy(k->net.from, host.there, 16);
	memcpy(k->net.to, k->to ? k->to : host.here, 16);
	if (k->rare == RARE_STRANGER)
		k->net.from[15] ^= 1;
	if (k->rare == RARE_ECN)
		k->net.traffic_class = 3;
	if (k->rare == RARE_SHORT && n > 16)
		n -= 4;
	note_answer(k, n);
	put_icrc(k, n);
	k->net.bytes = k->bytes;
	k->net.n = n + WIRE_ICRC_BYTES;
	if (!net_put(&k->net)) {
		host_receive();
		must(net_put(&k->net));
	}
}

static void packet_build(struct packet *k)
{
	size_t n;

	if (k->rare == RARE_PKEY)
		k->p.bth.pkey = 0x1234;
	if (k->rare == RARE_QPN)
		k->p.bth.qpn ^= 0x10;
	if (k->rare == RARE_VERSION)
		k->p.bth.version = 1;
	n = (size_t)(wire_put_transport(&k->p, k->bytes) - k->bytes);
	if (k->rare == RARE_PAD)
		k->bytes[1] ^= 0x10;
	packet_put(k, n);
}

/*
 * Return true if no connected QP may accept the packet.  Over IPv4 only 16
 * bits of the ICRC are checked (wire/icrc.h), so a QP may accept a bad ICRC.
 */
static bool is_for_nobody(const struct packet *k)
{
	return k->rare == RARE_STRANGER || k->rare == RARE_PKEY ||
	       k->rare == RARE_VERSION || (k->rare == RARE_ICRC && host.ipv6);
}

void peer_raw(const struct record *r, const uint8_t *bytes, size_t n)
{
	struct packet k = { .rare = rare_of(r),
			    .later = r->flags & FLAG_LATER };
	const struct host_qp *q = &host.qp[r->qp % QPS];

	n &= ~(size_t)3;
	memcpy(k.bytes, bytes, n);
	if (n >= 12 && r->length & 1) {
		k.bytes[2] = k.bytes[3] = 0xff;
		k.bytes[5] = (uint8_t)(q->qp->qp_num >> 16);
		k.bytes[6] = (uint8_t)(q->qp->qp_num >> 8);
		k.bytes[7] = (uint8_t)q->qp->qp_num;
	}
	packet_put(&k, n);
	host_receive();
}

/* ------------------------------------------------------- requests */

enum { SEND = 1, WRITE, READ, ATOMIC, PLACE, FLUSH };

static const struct {
	uint8_t kind;
	bool first, last;
} ops[32] = {
	[WIRE_SEND_FIRST] = { SEND, true, false },
	[WIRE_SEND_MIDDLE] = { SEND, false, false },
	[WIRE_SEND_LAST] = { SEND, false, true },
	[WIRE_SEND_LAST_IMM] = { SEND, false, true },
	[WIRE_SEND_LAST_INV] = { SEND, false, true },
	[WIRE_SEND_ONLY] = { SEND, true, true },
	[WIRE_SEND_ONLY_IMM] = { SEND, true, true },
	[WIRE_SEND_ONLY_INV] = { SEND, true, true },
	[WIRE_WRITE_FIRST] = { WRITE, true, false },
	[WIRE_WRITE_MIDDLE] = { WRITE, false, false },
	[WIRE_WRITE_LAST] = { WRITE, false, true },
	[WIRE_WRITE_LAST_IMM] = { WRITE, false, true },
	[WIRE_WRITE_ONLY] = { WRITE, true, true },
	[WIRE_WRITE_ONLY_IMM] = { WRITE, true, true },
	[WIRE_READ_REQUEST] = { READ, true, true },
	[WIRE_COMPARE_SWAP] = { ATOMIC, true, true },
	[WIRE_FETCH_ADD] = { ATOMIC, true, true },
	[WIRE_ATOMIC_WRITE] = { PLACE, true, true },
	[WIRE_FLUSH] = { FLUSH, true, true },
};

static const uint8_t choice[] = {
	WIRE_SEND_ONLY,	     WIRE_SEND_FIRST,	 WIRE_SEND_MIDDLE,
	WIRE_SEND_LAST,	     WIRE_SEND_LAST_IMM, WIRE_SEND_ONLY_IMM,
	WIRE_WRITE_ONLY,     WIRE_WRITE_FIRST,	 WIRE_WRITE_MIDDLE,
	WIRE_WRITE_LAST,     WIRE_WRITE_LAST_IMM, WIRE_WRITE_ONLY_IMM,
	WIRE_READ_REQUEST,   WIRE_COMPARE_SWAP,	 WIRE_FETCH_ADD,
	WIRE_SEND_LAST_INV,  WIRE_SEND_ONLY_INV, WIRE_FLUSH,
	WIRE_ATOMIC_WRITE,
};


static uint8_t transport_of(const struct host_qp *q)
{
	return q->type == IBV_QPT_UC	   ? WIRE_UC :
	       q->type == IBV_QPT_UD	   ? WIRE_UD :
	       q->type == IBV_QPT_XRC_RECV ? WIRE_XRC :
					     WIRE_RC;
}

static uint8_t opcode_of(const struct record *r, const struct host_qp *q)
{
	const uint8_t op = choice[r->op % sizeof(choice)];

	if (r->flags & FLAG_RAW)
		return r->op;
	return transport_of(q) | op;
}

static uint32_t psn_of(const struct record *r, uint32_t right)
{
	const int32_t d = r->flags & FLAG_FAR ? r->psn * 0x10001 : r->psn;

	return (right + (uint32_t)d) & WIRE_PSN_MASK;
}

static const struct key *key_of(const struct record *r)
{
	return &host.key[r->key % KEYS];
}

static uint32_t rkey_of(const struct record *r)
{
	const uint8_t more = r->key / KEYS;

	/* mostly an rkey of the host, else a value near it, or 0 */
	return more < 32 ? key_of(r)->rkey :
	       more < 37 ? key_of(r)->rkey + more - 34 :
			   0;
}

static uint64_t addr_of(const struct record *r)
{
	const int64_t off = (r->flags & FLAG_RARE ? 0 : r->offset) * 8;

	return (uintptr_t)host.mem + key_of(r)->at + (uint64_t)off;
}

/* Return the payload length of a request packet. */
static uint32_t payload_of(const struct record *r, const struct host_qp *q,
			   uint8_t op)
{
	const uint64_t left = q->write_length - q->write_done;

	if (!ops[op].kind)
		return r->length;
	if (ops[op].kind == PLACE)
		return 8;
	if (ops[op].kind >= READ)
		return 0;
	if (!ops[op].last)
		return r->flags & FLAG_ODD ? r->length : q->mtu;
	if (ops[op].kind == WRITE && !ops[op].first && q->under_way == WRITE &&
	    !(r->flags & FLAG_ODD))
		return (uint32_t)(left < q->mtu ? left : q->mtu);
	return r->flags & FLAG_BIG && r->flags & FLAG_ODD ?
		       r->length * 16u :
		       r->length;
}

static uint32_t reth_length(const struct record *r, const struct host_qp *q,
			    uint8_t op, uint32_t payload)
{
	const uint32_t more = (uint32_t)(r->psn & 3);

	switch (op) {
	case WIRE_READ_REQUEST:
		return r->length * (r->flags & FLAG_BIG ? q->mtu / 4 : 1) +
		       (r->flags & FLAG_ODD ? 0x80000000u : 0);
	case WIRE_WRITE_FIRST:
		return payload + r->length +
		       (r->flags & FLAG_BIG ? q->mtu * (more + 1) : 0);
	default:
		return payload + (r->flags & FLAG_ODD ? more - 1 : 0);
	}
}

static void request_fill(const struct record *r, const struct host_qp *q,
			 struct wire_packet *p)
{
	static uint8_t payload[WIRE_MAX_PAYLOAD];
	const uint8_t opcode = opcode_of(r, q), op = opcode & 0x1f;
	uint32_t n = payload_of(r, q, op);

	if (!*payload)
		memset(payload, 0x55, sizeof(payload));
	*p = (struct wire_packet){
		.bth = { .opcode = opcode,
			 .solicited = r->flags & FLAG_SOLICITED,
			 .ack_request = r->flags & FLAG_ACK,
			 .pkey = PKEY,
			 .qpn = q->qp->qp_num,
			 .psn = psn_of(r, host_epsn((int)(q - host.qp))) },
		.length = n,
		.payload = payload,
		.known = n,
	};
	payload[0] = (uint8_t)(1 + (host.next_id & 0x3f));
	p->reth.addr = addr_of(r);
	p->reth.rkey = rkey_of(r);
	p->reth.length = reth_length(r, q, op, n);
	p->atomiceth.addr =
		addr_of(r) + (r->flags & FLAG_ODD ? r->length & 7 : 0);
	p->atomiceth.rkey = p->reth.rkey;
	p->atomiceth.swap_add = 1;
	p->immdt.imm = 0x12345;
	p->feth.type = (uint8_t)(r->psn & 1 ? r->length & 15 : 1);
	p->feth.level = (uint8_t)(r->key / KEYS & 3);
	p->ieth.rkey = p->reth.rkey;
	p->deth.qkey = QKEY;
	p->deth.qpn = 5;
	p->xrceth.srqn = host.srqn ^ (rare_of(r) == RARE_SRQN);
}

/* ------------------------------------------------------- expected results */

static bool key_holds(const struct host_qp *q, uint32_t rkey, uint64_t addr,
		      uint64_t bytes, unsigned int right)
{
	const struct key *k;
	uint64_t at = addr - (uintptr_t)host.mem;

	if ((q->rights & right) != right)
		return false;
	if (!bytes)
		return true;
	for (k = host.key; k < host.key + KEYS; k++)
		if (k->may && !k->foreign && k->rkey == rkey &&
		    (k->rights & right) == right && at >= k->at &&
		    at + bytes <= (uint64_t)k->at + k->bytes &&
		    (k->qp < 0 || k->qp == q - host.qp))
			return true;
	return false;
}

/* Return the start address of the memory of a valid rkey, else 0. */
static uint64_t key_begin(uint32_t rkey)
{
	const struct key *k;

	for (k = host.key; k < host.key + KEYS; k++)
		if (k->may && k->rkey == rkey)
			return (uintptr_t)host.mem + k->at;
	return 0;
}

static bool write_is_wrong(const struct host_qp *q, const struct wire_packet *p,
			   uint8_t op)
{
	const bool begins = ops[op].first;
	const uint32_t rkey = begins ? p->reth.rkey : q->write_rkey;
	const uint64_t addr = begins ? p->reth.addr : q->write_addr;
	const uint64_t length = begins ? p->reth.length : q->write_length;
	const uint64_t done = begins ? 0 : q->write_done;

	if (!key_holds(q, rkey, addr + done, begins ? length : p->length,
		       IBV_ACCESS_REMOTE_WRITE))
		return true;
	return ops[op].last ? done + p->length != length :
			      done + p->length >= length;
}

/* Annex A19 */
static bool flush_is_wrong(const struct host_qp *q, const struct wire_packet *p)
{
	const bool mr = p->feth.level == FLUSH_MR;
	const unsigned int right = FLUSH_RIGHTS(p->feth.type);

	if (p->feth.level > FLUSH_MR || !right || p->feth.type & ~3)
		return true;
	return !key_holds(q, p->reth.rkey,
			  mr ? key_begin(p->reth.rkey) : p->reth.addr,
			  mr ? 1 : p->reth.length, right);
}

static bool fetch_is_wrong(const struct host_qp *q, const struct wire_packet *p,
			   uint8_t op)
{
	if (q - host.qp == QP_RTR) /* no responder resources */
		return true;
	if (ops[op].kind == FLUSH)
		return flush_is_wrong(q, p);
	if (ops[op].kind == READ)
		return !key_holds(q, p->reth.rkey, p->reth.addr,
				  p->reth.length, IBV_ACCESS_REMOTE_READ);
	if (ops[op].kind == PLACE)
		return p->reth.length != 8 || p->reth.addr & 7 ||
		       !key_holds(q, p->reth.rkey, p->reth.addr, 8,
				  IBV_ACCESS_REMOTE_WRITE);
	return p->atomiceth.addr & 7 ||
	       !key_holds(q, p->atomiceth.rkey, p->atomiceth.addr, 8,
			  IBV_ACCESS_REMOTE_ATOMIC);
}

/* Return true if the QP must not execute the packet, which has the ePSN. */
static bool is_wrong(const struct host_qp *q, const struct wire_packet *p)
{
	const uint8_t op = p->bth.opcode & 0x1f;

	if (!ops[op].kind)
		return true;
	if (q->under_way ? ops[op].first || ops[op].kind != q->under_way :
			   !ops[op].first)
		return true;
	if (ops[op].kind <= WRITE &&
	    (ops[op].last ? p->length > q->mtu || (!p->length && !ops[op].first) :
			    p->length != q->mtu))
		return true;
	if (ops[op].kind == WRITE)
		return write_is_wrong(q, p, op);
	return ops[op].kind != SEND && fetch_is_wrong(q, p, op);
}

static uint32_t psns_of(const struct host_qp *q, const struct wire_packet *p)
{
	const uint32_t n = (p->reth.length + q->mtu - 1) / q->mtu;

	return ops[p->bth.opcode & 0x1f].kind == READ && n ? n : 1;
}

/* The QP executed the packet: update the expected state. */
static void request_taken(struct host_qp *q, const struct wire_packet *p)
{
	const uint8_t op = p->bth.opcode & 0x1f;

	if (ops[op].kind == WRITE && ops[op].first) {
		q->write_rkey = p->reth.rkey;
		q->write_addr = p->reth.addr;
		q->write_length = p->reth.length;
		q->write_done = 0;
	}
	if (ops[op].kind == WRITE)
		q->write_done += p->length;
	q->under_way = ops[op].last ? 0 : ops[op].kind;
	if (wire_parts(p->bth.opcode) & WIRE_HAS(IETH) &&
	    p->ieth.rkey == host.key[KEY_WINDOW].rkey)
		host.key[KEY_WINDOW].may = false;
}

/* Bytes that the executed packets write; all: a SEND is among them. */
static struct {
	bool byte[MEM_BYTES], all;
} written;

/* Note what an executed packet writes. */
static void note_written(const struct host_qp *q, const struct wire_packet *p)
{
	const uint8_t op = p->bth.opcode & 0x1f;
	const uint64_t mem = (uintptr_t)host.mem;
	uint64_t from = 0, n = 0, i;

	if (ops[op].kind == SEND) {
		/* check_memory() checks the buffers of receives */
		written.all = true;
	} else if (ops[op].kind == WRITE) {
		n = p->length;
		from = q->write_addr + q->write_done - n - mem;
	} else if (ops[op].kind == ATOMIC) {
		n = 8;
		from = p->atomiceth.addr - mem;
	} else if (ops[op].kind == PLACE) {
		n = 8;
		from = p->reth.addr - mem;
	}
	for (i = from; i < MEM_BYTES && i - from < n; i++)
		written.byte[i] = true;
}

/* Check that executed packets changed no memory except what they write. */
static void check_written(const uint8_t *before)
{
	uint32_t i;

	for (i = 0; i < MEM_BYTES && !written.all; i++)
		must(host.mem[i] == before[i] || written.byte[i]);
}

/* ------------------------------------------------------- buffered packets */

/* The QP may have buffered the packet. */
static void early_note(struct host_qp *q, const struct wire_packet *p)
{
	uint32_t i;

	for (i = 0; i < q->n_early && q->early[i].bth.psn != p->bth.psn; i++)
		;
	if (i == EARLY) {
		q->unknown_early = true;
		return;
	}
	q->early[i] = *p;
	q->n_early += i == q->n_early;
}

static const struct wire_packet *early_find(const struct host_qp *q,
					    uint32_t psn)
{
	uint32_t i;

	for (i = 0; i < q->n_early; i++)
		if (q->early[i].bth.psn == psn)
			return &q->early[i];
	return NULL;
}

/*
 * The QP executed packets up to PSN now, the first of which is p.  Check that
 * it may execute the others.
 */
static void check_executed(struct host_qp *q, const struct wire_packet *p,
			   uint32_t now, const uint8_t *before)
{
	const uint32_t first = p->bth.psn;
	uint32_t at = first;

	memset(&written, 0, sizeof(written));
	for (; p; p = early_find(q, at)) {
		must(at == p->bth.psn);
		must(at == first || !is_wrong(q, p));
		request_taken(q, p);
		note_written(q, p);
		at = wire_psn_add(at, psns_of(q, p));
		if (at == now)
			break;
		if (q->unknown_early) {
			q->unsure = true;
			return;
		}
	}
	must(p);
	check_written(before);
	q->unsure = false;
}

static bool accepts(const struct host_qp *q)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	must(!ibv_query_qp(q->qp, &a, IBV_QP_STATE, &init));
	if (host.port_down)
		return false;
	return a.qp_state == IBV_QPS_RTR || a.qp_state == IBV_QPS_RTS ||
	       a.qp_state == IBV_QPS_SQD || a.qp_state == IBV_QPS_SQE;
}

/*
 * Check the result of a packet for an RC QP or an XRC target.  The host
 * received no other packet at the same time.
 */
static void reliable_check(struct host_qp *q, const struct wire_packet *p,
			   uint32_t epsn, const uint8_t *before)
{
	const uint32_t now = host_epsn((int)(q - host.qp));
	const bool same = !memcmp(host.mem, before, MEM_BYTES);
	const uint8_t op = p->bth.opcode & 0x1f;

	if (p->bth.psn != epsn) {
		must(now == epsn && same);
		early_note(q, p);
		return;
	}
	if (q->unsure && (now == epsn || !ops[op].first))
		return;
	if ((q->type == IBV_QPT_XRC_RECV && p->xrceth.srqn != host.srqn) ||
	    (!q->unsure && is_wrong(q, p))) {
		must(now == epsn);
		must(same || ops[op].kind == SEND);
		return;
	}
	if (now == epsn) /* the QP refused it, for example by an RNR NAK */
		return;
	check_executed(q, p, now, before);
}

void peer_request(const struct record *r)
{
	static uint8_t before[MEM_BYTES];
	const int i = r->qp % QPS;
	struct host_qp *q = &host.qp[i];
	struct packet k = { .rare = rare_of(r),
			    .later = r->flags & FLAG_LATER };
	const uint8_t transport = transport_of(q);
	const uint32_t epsn = host_epsn(i);
	const bool alone = net_is_empty(), received = accepts(q);

	request_fill(r, q, &k.p);
	if (k.p.length > WIRE_MAX_PAYLOAD || !wire_parts(k.p.bth.opcode))
		return;
	packet_build(&k);
	if (r->flags & FLAG_LATER) {
		q->unsure = q->unknown_early = true;
		return;
	}
	memcpy(before, host.mem, MEM_BYTES);
	host_receive();
	check_memory();
	if (!alone) {
		q->unsure = q->unknown_early = true;
	} else if ((is_for_nobody(&k) &&
		    !(q->type == IBV_QPT_UD && k.rare == RARE_STRANGER)) ||
		   !received ||
		   (k.p.bth.opcode & WIRE_TRANSPORT) != transport) {
		must(host_epsn(i) == epsn);
		must(!memcmp(host.mem, before, MEM_BYTES));
	} else if (k.rare && k.rare != RARE_ECN && k.rare != RARE_SRQN) {
		q->unsure = q->unknown_early = true;
	} else if (is_reliable(q)) {
		reliable_check(q, &k.p, epsn, before);
	}
}

/* ------------------------------------------------------- datagrams */

void peer_datagram(const struct record *r)
{
	struct packet k = { .rare = rare_of(r),
			    .later = r->flags & FLAG_LATER };
	struct record as = *r;

	as.qp = QP_UD;
	as.flags &= (uint8_t)~FLAG_RAW;
	request_fill(&as, &host.qp[QP_UD], &k.p);
	k.p.bth.opcode = WIRE_UD | (r->op & 1 ? WIRE_SEND_ONLY_IMM :
						WIRE_SEND_ONLY);
	k.p.length = k.p.known = r->length * (r->flags & FLAG_BIG ? 16u : 1u);
	if (r->key & 0x80)
		k.p.deth.qkey++;
	if (r->key & 1) { /* multicast QPN, with or without group GID */
		k.p.bth.qpn = 0xffffff;
		k.to = r->key & 2 ? host_group : NULL;
	}
	packet_build(&k);
	if (!(r->flags & FLAG_LATER))
		host_receive();
}

void peer_mad(const struct record *r, const uint8_t *mad, size_t n)
{
	struct packet k = {
		.p = { .bth = { .opcode = WIRE_UD | WIRE_SEND_ONLY,
				.pkey = PKEY,
				.qpn = 1 },
		       .deth = { .qkey = 0x80010000, .qpn = 1 },
		       .length = (uint32_t)n,
		       .payload = mad,
		       .known = (uint32_t)n },
	};

	packet_build(&k);
	if (!(r->flags & FLAG_LATER))
		host_receive();
}

/* ------------------------------------------------------- responses */

/* Return the outstanding WR that has the PSN, or NULL. */
static const struct posted *wr_of(const struct host_qp *q, uint32_t psn)
{
	const struct posted *p;
	uint32_t i;

	for (i = 0; i < q->sq.n; i++) {
		p = &q->sq.wr[(q->sq.first + i) % POSTED];
		if (((psn - p->psn) & WIRE_PSN_MASK) < p->packets)
			return p;
	}
	return NULL;
}

static bool wr_is_atomic(const struct posted *p)
{
	return p->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       p->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Return the payload length of the READ response for psn. */
static uint32_t data_length(const struct host_qp *q, const struct posted *p,
			    uint32_t psn)
{
	const uint32_t at = ((psn - p->psn) & WIRE_PSN_MASK) * q->mtu;

	return p->length - at < q->mtu ? p->length - at : q->mtu;
}

static void answer_right(const struct host_qp *q, struct wire_packet *p)
{
	const struct posted *w = wr_of(q, p->bth.psn);
	uint32_t at;

	p->bth.opcode = WIRE_ACKNOWLEDGE;
	if (w && wr_is_atomic(w))
		p->bth.opcode = WIRE_ATOMIC_ACKNOWLEDGE;
	if (!w || w->opcode != IBV_WR_RDMA_READ)
		return;
	at = (p->bth.psn - w->psn) & WIRE_PSN_MASK;
	p->length = p->known = data_length(q, w, p->bth.psn);
	p->bth.opcode = w->packets == 1	     ? WIRE_READ_ONLY :
			!at		     ? WIRE_READ_FIRST :
			at + 1 == w->packets ? WIRE_READ_LAST :
					       WIRE_READ_MIDDLE;
}

static void answer_other(const struct record *r, struct wire_packet *p)
{
	static const uint8_t syndromes[] = { WIRE_RNR_NAK,	 0x20 | 31,
					     WIRE_NAK_SEQUENCE,	 WIRE_NAK_INVALID,
					     WIRE_NAK_ACCESS,	 WIRE_NAK_OPERATION,
					     0x64,		 0x40,
					     0xff,		 0x00 };
	static const uint8_t reads[] = { WIRE_READ_FIRST, WIRE_READ_MIDDLE,
					 WIRE_READ_LAST, WIRE_READ_ONLY };

	p->bth.opcode = WIRE_ACKNOWLEDGE;
	switch (r->op % 8) {
	case 0:
	case 1:
	case 2:
		p->aeth.syndrome = syndromes[r->key % sizeof(syndromes)];
		break;
	case 3:
		p->bth.opcode = reads[r->key % sizeof(reads)];
		break;
	case 4:
		p->bth.opcode = WIRE_ATOMIC_ACKNOWLEDGE;
		break;
	case 5:
		p->bth.opcode = WIRE_CNP_OPCODE;
		break;
	}
}

void peer_answer(const struct record *r)
{
	static uint8_t data[WIRE_MAX_PAYLOAD];
	struct host_qp *q = &host.qp[r->qp % QPS];
	struct packet k = { .rare = rare_of(r),
			    .later = r->flags & FLAG_LATER };
	struct wire_packet *p = &k.p;

	memset(data, 0x33, sizeof(data));
	*p = (struct wire_packet){
		.bth = { .pkey = PKEY,
			 .qpn = q->qp->qp_num,
			 .psn = psn_of(r, q->answered) },
		.aeth = { .syndrome = WIRE_ACK },
		.atomicack = { .original = 9 },
		.payload = data,
	};
	if (r->op & 0x80)
		answer_other(r, p);
	else
		answer_right(q, p);
	if (r->flags & FLAG_ODD)
		p->length = p->known = r->length * 4u;
	if (!(r->op & 0x80))
		q->answered = wire_psn_add(p->bth.psn, 1);
	packet_build(&k);
	if (!(r->flags & FLAG_LATER))
		host_receive();
}

/* ------------------------------------------------------- received packets */

/* Check that the payload contains no memory that the host must not send. */
static void check_secrets(const struct wire_packet *p)
{
	const uint8_t *at = p->payload;
	uint32_t i, run = 0;

	for (i = 0; i < p->length; i++) {
		run = at[i] == SECRET ? run + 1 : 0;
		must(run < 8);
	}
}

static void check_icrc(const struct net_packet *net)
{
	struct wire_path path = { .traffic_class = net->traffic_class,
				  .source_port = net->port };
	const size_t n = net->n - WIRE_ICRC_BYTES;
	struct wire_front front;

	memcpy(path.sgid, net->from, 16);
	memcpy(path.dgid, net->to, 16);
	wire_front_begin(&front, &path);
	must(wire_front_icrc(&front, net->ip_id, net->bytes, n) ==
	     wire_get_icrc(net->bytes + n));
}

void net_sent(const struct net_packet *net)
{
	struct wire_packet p;
	struct host_qp *q;
	uint32_t end;

	must(net->n >= WIRE_BTH_BYTES + WIRE_ICRC_BYTES);
	must(!wire_parse(&p, net->bytes, net->n - WIRE_ICRC_BYTES));
	check_icrc(net);
	check_secrets(&p);
	if (p.bth.qpn == 1)
		rdmacm_receive(&p);
	if (p.bth.qpn < PEER_QPN(0) || p.bth.qpn >= PEER_QPN(QPS))
		return;
	q = &host.qp[p.bth.qpn - PEER_QPN(0)];
	if (!ops[p.bth.opcode & 0x1f].kind || q->type != IBV_QPT_RC ||
	    p.bth.opcode == WIRE_CNP_OPCODE)
		return;
	end = wire_psn_add(p.bth.psn, psns_of(q, &p));
	must(wire_psn_minus(end, q->psn) <= 0); /* a WR was posted for it */
	if (wire_psn_minus(end, q->sent_high) > 0)
		q->sent_high = end;
}
