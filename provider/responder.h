/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The responder: what the other end's NIC would do, done by the requester.
 *
 * These functions run in the requester's process, on the responder's shared
 * state, while the requester's guard is up.
 */
#ifndef URXE_RESPONDER_H
#define URXE_RESPONDER_H

#include "mem.h"
#include "urxe.h"

/* What comes back to the requester. */
enum response {
	RESP_ACK,
	RESP_RNR, /* no receive is posted */
	RESP_SILENCE, /* nobody there, or somebody else's connection */
	RESP_NAK_SEQUENCE, /* PSN error: retried like silence */
	RESP_NAK_INVALID, /* remote invalid request */
	RESP_NAK_ACCESS, /* remote access error */
	RESP_NAK_OPERATION, /* remote operational error */
};

/* The message as it arrives. */
struct request {
	uint8_t opcode; /* enum ibv_wr_opcode */
	bool solicited;
	uint32_t imm, src_qp;
	uint64_t length;
	const struct urxe_seg *src;
};

/* Find the other end of qp; false if it is not (any more) there. */
bool conn_resolve(struct urxe_qp *qp);
void conn_drop(struct urxe_qp *qp);

/* Is somebody there who listens to us, at the PSN we are at? */
enum response responder_ready(struct urxe_qp *qp);

/* May an RDMA or atomic request touch this?  On RESP_ACK, *seg is it. */
enum response responder_access(struct urxe_conn *c, uint32_t rkey,
			       uint64_t addr, uint64_t len, uint32_t access,
			       struct urxe_seg *seg,
			       const struct urxe_key **key);

/* Is a receive posted, for a message that consumes one? */
bool responder_has_receive(const struct urxe_conn *c);

/* Deliver a SEND, or complete a WRITE WITH IMMEDIATE, into a receive. */
enum response responder_receive(struct urxe_conn *c, const struct request *r);

/* 8 bytes, read-modify-write; *old gets what was there. */
enum response responder_atomic(struct urxe_qp *qp, const struct urxe_seg *seg,
			       const struct urxe_key *key,
			       const struct urxe_wqe *w, uint64_t *old);

/* A request was served: count its packets. */
void responder_acked(struct urxe_qp *qp, uint64_t length);

/* A NAK went out: the responder's QP goes to the error state. */
void responder_broken(struct urxe_conn *c, enum response nak);

#endif
