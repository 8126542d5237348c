/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Send queues: rings of struct urxe_wqe in private memory, protected by
 * qp->lock.  Pollers release slots by storing tail.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "engine/core/av.h"
#include "shared/opcode.h"
#include "shared/layout.h"

/* Progress of the invalidation of a SEND WITH INVALIDATE; see bind.h. */
enum urxe_inv {
	URXE_INV_TO_DO,
	URXE_INV_BUSY, /* failed so far: a requester uses the window */
	URXE_INV_DONE,
	URXE_INV_FAILED,
};

struct urxe_sge {
	uint64_t addr;
	uint32_t length, lkey;
};

/* An SQ slot (WQE): the WR as posted, then SGEs or inline data. */
struct urxe_wqe {
	uint64_t wr_id;
	uint64_t length; /* total of the SGEs or of the inline data, bytes */
	uint64_t remote_addr;
	union {
		struct {
			uint64_t compare_add, swap;
		} atomic;
		struct {
			uint32_t qpn, qkey;
			struct urxe_av av;
		} ud;
		struct { /* IBV_WR_BIND_MW */
			uint64_t addr, length;
			uint32_t mw_key, new_key, mr_key, access;
		} bind;
		struct { /* URXE_WR_FLUSH */
			uint32_t type, level;
		} flush;
		uint8_t write_data[8]; /* URXE_WR_ATOMIC_WRITE, no SGE */
	};
	uint32_t rkey;
	uint32_t imm; /* in network byte order, or the rkey to invalidate */
	uint32_t srqn; /* XRC: the remote SRQ */
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t flags; /* enum ibv_send_flags */
	uint8_t num_sge;
	uint8_t inv; /* IBV_WR_SEND_WITH_INV: enum urxe_inv */
	bool foreign_ah; /* UD: the AH is not of the QP's PD */
	uint8_t answer; /* response: enum ibv_wc_status + 1, or 0: none yet */
	uint16_t dlid; /* UD on InfiniBand: destination LID */
	struct urxe_sge sge[]; /* or inline bytes */
};

/*
 * A send queue.  tail <= done <= begun <= prod.  Slots below tail are free:
 * their completion was polled.  flight.h has the other states.
 */
struct urxe_sq {
	char *ring; /* NULL: allocated with the first WR */
	uint32_t mask, stride;
	uint32_t max_wr, max_sge, max_inline;
	uint32_t ops; /* opcodes that are supported, WQE_BIT() */
	uint32_t max_msg; /* longest message in bytes */
	uint32_t max_sge_rd; /* most SGEs of an RDMA READ */
	uint32_t prod, begun, done;
	uint32_t to_restart; /* parked WRs from begun on that were in flight */
	uint32_t signaled; /* index after the last WR that has a CQE */
	_Atomic uint32_t tail;
	bool signal_all;
};

struct urxe_qp;

static inline struct urxe_wqe *sq_slot(const struct urxe_sq *sq, uint32_t index)
{
	return (struct urxe_wqe *)(void *)(sq->ring +
					   (uint64_t)(index & sq->mask) *
						   sq->stride);
}

/* Is w a local operation, which sends no packet? */
static inline bool wqe_is_local(const struct urxe_wqe *w)
{
	return w->opcode == IBV_WR_BIND_MW || w->opcode == IBV_WR_LOCAL_INV;
}

/*
 * Number of packets (PSNs) of a request or a response of length bytes; the
 * path MTU is 1 << shift bytes.
 */
static inline uint64_t sq_packets(uint64_t length, uint8_t shift)
{
	return length ? (length + (1ull << shift) - 1) >> shift : 1;
}

/* The length that determines w's packets; a FLUSH carries no data. */
static inline uint64_t wqe_wire_length(const struct urxe_wqe *w)
{
	return w->opcode == URXE_WR_FLUSH ? 0 : w->length;
}

/* Is the message longer than the device can send?  A FLUSH carries no data. */
static inline bool sq_too_long(const struct urxe_sq *sq,
			       const struct urxe_wqe *w)
{
	return w->length > sq->max_msg && w->opcode != URXE_WR_FLUSH;
}

/*
 * Set the dimensions of sq, and return the size of its ring in bytes.  The
 * caller may provide the memory in sq->ring.
 */
size_t sq_plan(struct urxe_sq *sq, const struct ibv_qp_cap *cap,
	       bool signal_all);
/*
 * Allocate the ring when the first WR is built, because most QPs of a large
 * job never send.  False if there is no memory.
 */
bool sq_make_ring(struct urxe_sq *sq);
void sq_reset(struct urxe_sq *sq);
