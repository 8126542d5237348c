/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Harness of the responder tests.  The test is the remote host, 10.91.0.2: on
 * a socket of its own it sends single packets, also ones that no requester
 * sends, to the device's address, 10.91.0.1.  own-net sets up both addresses.
 *
 * All functions are called in the test's thread.  Any failure ends the test.
 */
#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include "../../mark.h"
#include "wire/psn.h"
#include "wire/receiver.h"
#include "wire/sender.h"

#define WAIT_MS 60000 /* limit of each wait; only a hang exceeds it */
#define QUIET_MS 50
#define MTU 1024u
#define QPN 77u /* of the remote host */
#define PSN 0xfffffeu /* the first one; PSNs wrap around soon */
#define BYTES 65536u
#define TIMER 13 /* min_rnr_timer of the QPs */

/* GIDs of the device and of the remote host. */
extern const uint8_t here[16], there[16];

/* ------------------------------------------------------- the device */

extern struct ibv_context *ctx;
extern struct ibv_pd *pd;
extern struct ibv_cq *cq;
extern struct ibv_mr *mr; /* of buf, BYTES long */
extern uint8_t *buf;
extern uint8_t text[BYTES]; /* payload of the packets */

/* Fixture: open the device and the remote host's socket, and close both. */
void setup(void);
void teardown(void);

struct ibv_context *open_device(void);
/* Return the index of `here` in the GID table (RoCE v2). */
uint8_t gid_index(void);

/*
 * Move the QP to RTR, connected to QP `QPN` of the remote host.  It expects
 * `PSN`.
 */
void connect_qp(struct ibv_qp *qp);
/* Move the QP from INIT to RTR.  Returns what ibv_modify_qp() returns. */
int modify_to_rtr(struct ibv_qp *qp);
/* Create a QP and connect it: connect_qp().  @srq may be NULL. */
struct ibv_qp *make_qp_of(enum ibv_qp_type type, struct ibv_srq *srq);
struct ibv_qp *make_qp(enum ibv_qp_type type);
/* Move the QP from RTR to RTS, and set its remote access flags. */
void allow(struct ibv_qp *qp, int access);
enum ibv_qp_state state_of(struct ibv_qp *qp);

void post_recv(struct ibv_qp *qp, uint64_t id, uint32_t off, uint32_t length);
/* Poll until there is a completion, and return it. */
struct ibv_wc await_completion(void);
void no_completion(void);
uint64_t now_ms(void);

/* ------------------------------------------------------- the other host */

struct wire_packet packet(uint32_t qpn, uint8_t opcode, uint32_t psn);
/* Set the payload. */
void with_bytes(struct wire_packet *p, const void *bytes, uint32_t n);
/* Send a packet to the device. */
void say(const struct wire_packet *p);
/*
 * Send a packet with this traffic class.  Its low two bits are the ECN
 * codepoint; 3 is CE, congestion (RFC 3168).
 */
void say_by(const struct wire_packet *p, uint8_t traffic_class);
/*
 * true: queue the packets that follow.  false: send the queued packets, as
 * one GSO datagram if they have the same size.
 */
void say_together(bool begin);
/*
 * true: send packets of more than FRAGMENT bytes as several IP fragments.
 * false: again as one.
 */
#define FRAGMENT 600
void say_in_fragments(bool begin);
/* Send n bytes as the payload of a UDP datagram. */
void say_bytes(const void *bytes, size_t n);

/* Send a packet with n bytes of text from off on. */
void say_send(const struct ibv_qp *qp, uint8_t opcode, uint32_t psn,
	      uint32_t off, uint32_t n);
/* Send a FETCH ADD of the word at buf + off. */
void say_fetch_add(const struct ibv_qp *qp, uint32_t psn, uint32_t off,
		   uint64_t add);
/*
 * Send a packet with a RETH: address of buf, @total bytes.  The payload is
 * the first n bytes of text.
 */
void say_rdma(const struct ibv_qp *qp, uint8_t opcode, uint32_t psn,
	      uint32_t rkey, uint32_t total, uint32_t n);

/*
 * Return a pseudorandom number below n.  The sequence is the same in each
 * run.
 */
uint32_t chance(uint32_t n);
/*
 * Return a packet with random headers, some of them nearly valid.  Its opcode
 * may be undefined.
 */
struct wire_packet packet_of_chance(uint32_t qpn);

/*
 * Receive the next packet.  Returns false if none arrives for ms.  The
 * payload is in the receiver, until the next packet is received.
 */
bool receive_within(struct wire_packet *p, int ms);
/* Receive the next packet.  receive_within() with WAIT_MS. */
struct wire_packet receive_packet(void);
/* Check that no packet arrives for QUIET_MS. */
void silence(void);
/* Receive an ACK or NAK with this syndrome and PSN. */
void receive_answer(uint8_t syndrome, uint32_t psn);
/*
 * Receive ACKs up to the one for psn.  An ACK may acknowledge several
 * packets.
 */
void receive_acks(uint32_t psn);

/* ------------------------------------------------------- test cases */

/*
 * test_responder.c: start a process that opens the device first and so is the
 * socket owner.
 */
pid_t start_owner(void);
/* @child is set to a child of it, which shares its context and sleeps. */
pid_t start_owner_with(pid_t *child);

/* test_responder_{killed,place,poll,read,vanish,xrc}.c */
TCase *killed_case(void);
TCase *place_case(void);
TCase *poll_case(void);
TCase *read_case(void);
TCase *vanish_case(void);
TCase *xrc_case(void);
