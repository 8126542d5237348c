// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Segmentation of WRs into packets, see message.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "engine/qp/why.h"
#include "engine/qp/wqe.h"
#include "message.h"
#include "wire/socket.h"

#define PKEY 0xffff /* the only P_Key */

uint32_t message_packets(const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	return (uint32_t)sq_packets(wqe_wire_length(w), qp->mtu_shift);
}

bool message_fetches(const struct urxe_wqe *w)
{
	return (WQE_FETCH_OPS | WQE_BIT(URXE_WR_FLUSH) |
		WQE_BIT(URXE_WR_ATOMIC_WRITE)) &
	       WQE_BIT(w->opcode);
}

static uint8_t transport_of(const struct urxe_qp *qp)
{
	switch (qp->type) {
	case IBV_QPT_UC:
		return WIRE_UC;
	case IBV_QPT_UD:
		return WIRE_UD;
	case IBV_QPT_XRC_SEND:
		return WIRE_XRC;
	default:
		return WIRE_RC;
	}
}

/* Opcodes of a message, by position of the packet. */
struct opcodes {
	uint8_t first, middle, last, only;
};

static const struct opcodes sends = { WIRE_SEND_FIRST, WIRE_SEND_MIDDLE,
				      WIRE_SEND_LAST, WIRE_SEND_ONLY };
static const struct opcodes sends_imm = { WIRE_SEND_FIRST, WIRE_SEND_MIDDLE,
					  WIRE_SEND_LAST_IMM,
					  WIRE_SEND_ONLY_IMM };
static const struct opcodes sends_inv = { WIRE_SEND_FIRST, WIRE_SEND_MIDDLE,
					  WIRE_SEND_LAST_INV,
					  WIRE_SEND_ONLY_INV };
static const struct opcodes writes = { WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE,
				       WIRE_WRITE_LAST, WIRE_WRITE_ONLY };
static const struct opcodes writes_imm = { WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE,
					   WIRE_WRITE_LAST_IMM,
					   WIRE_WRITE_ONLY_IMM };

static uint8_t opcode_at(const struct opcodes *p, uint32_t i, uint32_t n)
{
	if (n == 1)
		return p->only;
	return i == 0 ? p->first : i == n - 1 ? p->last : p->middle;
}

static uint8_t opcode_of(const struct urxe_wqe *w, uint32_t i, uint32_t n)
{
	switch (w->opcode) {
	case IBV_WR_SEND_WITH_IMM:
		return opcode_at(&sends_imm, i, n);
	case IBV_WR_SEND_WITH_INV:
		return opcode_at(&sends_inv, i, n);
	case IBV_WR_RDMA_WRITE:
		return opcode_at(&writes, i, n);
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return opcode_at(&writes_imm, i, n);
	case IBV_WR_RDMA_READ:
		return WIRE_READ_REQUEST;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return WIRE_COMPARE_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return WIRE_FETCH_ADD;
	case URXE_WR_FLUSH:
		return WIRE_FLUSH;
	case URXE_WR_ATOMIC_WRITE:
		return WIRE_ATOMIC_WRITE;
	default:
		return opcode_at(&sends, i, n);
	}
}

/* Return the number of bytes in packets i to i + k - 1. */
static uint32_t bytes_of(const struct urxe_qp *qp, const struct urxe_wqe *w,
			 uint32_t i, uint32_t k)
{
	uint64_t from = (uint64_t)i << qp->mtu_shift;
	uint64_t left = w->length > from ? w->length - from : 0;
	uint64_t most = (uint64_t)k << qp->mtu_shift;

	return (uint32_t)(left < most ? left : most);
}

static void put_memory(const struct urxe_qp *qp, const struct urxe_wqe *w,
		       uint32_t i, uint32_t more, struct wire_packet *p)
{
	p->reth.addr = w->remote_addr;
	p->reth.rkey = w->rkey;
	p->reth.length = (uint32_t)w->length;
	if (w->opcode != IBV_WR_RDMA_READ)
		return;
	p->reth.addr += (uint64_t)i << qp->mtu_shift;
	p->reth.length = bytes_of(qp, w, i, more);
}

static void put_atomic(const struct urxe_wqe *w, struct wire_packet *p)
{
	bool adds = w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

	p->atomiceth.addr = w->remote_addr;
	p->atomiceth.rkey = w->rkey;
	p->atomiceth.swap_add = adds ? w->atomic.compare_add : w->atomic.swap;
	p->atomiceth.compare = adds ? 0 : w->atomic.compare_add;
}

void message_packet(const struct urxe_qp *qp, const struct urxe_wqe *w,
		    uint32_t i, uint32_t n, uint32_t more,
		    struct wire_packet *p)
{
	uint8_t opcode = opcode_of(w, i, n);
	unsigned int parts = wire_parts(opcode);
	bool last = i == n - 1;

	memset(p, 0, sizeof(*p));
	p->bth.opcode = opcode | transport_of(qp);
	p->bth.pkey = PKEY;
	p->bth.qpn = qp->type == IBV_QPT_UD ? w->ud.qpn : qp->attr.dest_qp_num;
	p->bth.solicited = last && w->flags & IBV_SEND_SOLICITED;
	p->xrceth.srqn = w->srqn;
	if (parts & WIRE_HAS(RETH))
		put_memory(qp, w, i, more, p);
	if (parts & WIRE_HAS(ATOMICETH))
		put_atomic(w, p);
	if (parts & WIRE_HAS(IMMDT))
		p->immdt.imm = ntohl(w->imm);
	if (parts & WIRE_HAS(IETH))
		p->ieth.rkey = w->imm;
	if (parts & WIRE_HAS(FETH)) {
		p->feth.type = (uint8_t)w->flush.type;
		p->feth.level = (uint8_t)w->flush.level;
	}
	if (parts & WIRE_HAS(PAYLOAD))
		p->length = bytes_of(qp, w, i, 1);
}

void message_path(const struct urxe_qp *qp, struct wire_path *path)
{
	const struct ibv_global_route *g = &qp->attr.ah_attr.grh;

	memset(path, 0, sizeof(*path));
	path->qpn = qp->qpn;
	shared_gid_get(&qp->sh->sgid, path->sgid);
	shared_gid_get(&qp->sh->dgid, path->dgid);
	path->traffic_class = g->traffic_class;
	path->hop_limit = g->hop_limit;
	path->flow_label = g->flow_label;
}

void message_note_unsent(uint32_t dest, uint32_t bytes, const uint8_t own[16],
			 int err)
{
	char name[IF_NAMESIZE] = "";
	uint64_t word[2];
	uint32_t mtu;

	mtu = err == -EMSGSIZE ? wire_interface_mtu(own, name) : 0;
	memcpy(word, name, sizeof(word));
	if (mtu)
		why_note(WIRE_MTU, dest, bytes, WIRE_HEADERS, word[0], word[1],
			 mtu);
	else
		why_note(WIRE_SEND, dest, (uint64_t)-err);
}
