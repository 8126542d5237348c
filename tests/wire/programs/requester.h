/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Harness of the wire requester's tests: one QP, whose peer is a QP on a
 * remote host.  The remote host is the test, with a socket at 10.91.0.2.  It
 * receives the requests and sends the responses that each test needs.
 *
 * All functions are called in the test's thread.  Any failure ends the test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../verbs/types.h"
#include "wire/receiver.h"
#include "wire/sender.h"

#define QPN 0xabcdef /* of the remote QP */
#define RKEY 0x777 /* of remote memory, which does not exist */
#define ADDR 0x10000u
#define PSN 0x123456u /* of the first packet */

/* GIDs of the device and of the remote host. */
extern const uint8_t here[16], there[16];

/* ------------------------------------------------------- the QP */

extern struct node n;

/* Default options with ACK timeout 0, which is infinite. */
struct opts wire_opts(void);
/*
 * Open the node and the peer.  The QP is in RTS, connected to QP `QPN` of the
 * remote host.  Returns when a process receives packets.
 */
void open_to_peer(const struct opts *o);
/*
 * The same with a QP of another connected type.  A completion channel (struct
 * opts) is on the send CQ.
 */
void open_type_to_peer(enum ibv_qp_type type, const struct opts *o);
/* Connect another QP, to the same QP of the remote host. */
void connect_to_peer(struct ibv_qp *qp, enum ibv_qp_type type,
		     const struct opts *o);
void close_peer(void);
/* Does the other process that is the socket owner map that file? */
bool owner_maps(const char *path);
/* Return the index of `here` in the GID table (RoCE v2). */
uint8_t own_index(void);
/* Wait until a process is bound to the UDP port at `here`. */
void wait_until_received(void);

/* Post a WR, signaled and solicited.  RDMA operations use ADDR and RKEY. */
void post_op(enum ibv_wr_opcode op, uint64_t id, size_t off, uint32_t len);
/* Return whether the node's buffer contains the bytes at off. */
bool has(const void *bytes, size_t off, size_t len);

/* Store the output of "urxe why", of the QP or of all (NULL). */
void why(const struct ibv_qp *qp, char *out, size_t room);
/*
 * Wait until the output of "urxe why" contains the text.  It may take a
 * moment until a change of state is visible.
 */
void why_says(const char *text);

/* ------------------------------------------------------- the other host */

struct peer {
	struct wire_socket socket;
	struct wire_receiver *receiver;
	struct wire_sender sender;
	struct wire_received got; /* the packet received last */
};
extern struct peer peer;

/*
 * Receive the next packet for QP `QPN`.  The payload is in the receiver,
 * until the next packet is received.
 */
const struct wire_packet *take_any(void);
/* Receive the next packet; skip damaged ones. */
const struct wire_packet *take_sound(void);
/* Receive the next packet, which must have this opcode and PSN. */
const struct wire_packet *take(uint8_t opcode, uint32_t psn);
/* Check that no packet has arrived.  Does not wait. */
void take_none(void);

/* Return a response to the node's QP, without a payload. */
struct wire_packet answer(uint8_t opcode, uint32_t psn, uint8_t syndrome);
/* Send a packet to the device. */
void give(const struct wire_packet *p);
void ack(uint32_t psn);
void nak(uint32_t psn, uint8_t syndrome);
/* Send an RDMA READ response packet. */
void data(uint8_t opcode, uint32_t psn, const void *bytes, uint32_t len);
