/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A QP whose other end is on another host.  That host is the test, at
 * 10.91.0.2: it takes packets, and answers what each test wants.  What fails
 * ends the test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../verbs/harness.h"
#include "wire/receiver.h"
#include "wire/sender.h"

#define QPN 0xabcdef /* of the other end */
#define RKEY 0x777
#define ADDR 0x10000u
#define PSN 0x123456u /* of the first packet */

extern const uint8_t here[16], there[16];

/* ------------------------------------------------------- the QP */

extern struct node n;

/* Without timeouts. */
struct opts wire_opts(void);
/* Connected to the other host's QP `QPN`, in RTS; packets are heard. */
void open_to_peer(const struct opts *o);
void close_peer(void);
/* The entry of the GID table that is `here`. */
uint8_t own_index(void);
/* Until a process has the port of `here`. */
void wait_until_heard(void);

/* Signaled and solicited; of RDMA at ADDR. */
void post_op(enum ibv_wr_opcode op, uint64_t id, size_t off, uint32_t len);
/* The node's buffer has them there. */
bool has(const void *bytes, size_t off, size_t len);

/* ------------------------------------------------------- the other host */

struct peer {
	struct wire_socket socket;
	struct wire_receiver *receiver;
	struct wire_sender sender;
	struct wire_received got; /* the packet that was taken last */
};
extern struct peer peer;

/* The next packet of the QP; its payload is in the receiver. */
const struct wire_packet *take_any(void);
/* Without those that were damaged. */
const struct wire_packet *take_sound(void);
/* It is that one. */
const struct wire_packet *take(uint8_t opcode, uint32_t psn);
/* There is none. */
void take_none(void);

struct wire_packet answer(uint8_t opcode, uint32_t psn, uint8_t syndrome);
void give(const struct wire_packet *p);
void ack(uint32_t psn);
void nak(uint32_t psn, uint8_t syndrome);
/* A packet of the answer to a READ. */
void data(uint8_t opcode, uint32_t psn, const void *bytes, uint32_t len);
