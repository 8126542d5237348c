/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The test is another host, 10.91.0.2: on a socket of its own it says, packet
 * by packet, what no requester would, to the device's address, 10.91.0.1.  What
 * is wrong ends the test.
 */
#pragma once

#include <infiniband/verbs.h>

#include "../mark.h"
#include "wire/psn.h"
#include "wire/receiver.h"
#include "wire/sender.h"

#define WAIT_MS 60000 /* what must happen and takes so long hangs */
#define QUIET_MS 50
#define MTU 1024u
#define QPN 77u /* of ours */
#define PSN 0xfffffeu /* numbers go round soon */
#define BYTES 65536u
#define TIMER 13

extern const uint8_t here[16], there[16];

/* ------------------------------------------------------- the device */

extern struct ibv_context *ctx;
extern struct ibv_pd *pd;
extern struct ibv_cq *cq;
extern struct ibv_mr *mr; /* of all of buf, BYTES of it */
extern uint8_t *buf;
extern uint8_t text[BYTES]; /* what is sent */

/* Of each test of packets: the device is open, and the other host there. */
void setup(void);
void teardown(void);

struct ibv_context *open_device(void);
uint8_t gid_index(void);

/* Connected to the other host's QP `QPN`, in RTR, at `PSN`. */
void connect_qp(struct ibv_qp *qp);
/* Its last step; what ibv_modify_qp returns. */
int modify_to_rtr(struct ibv_qp *qp);
struct ibv_qp *make_qp_of(enum ibv_qp_type type, struct ibv_srq *srq);
struct ibv_qp *make_qp(enum ibv_qp_type type);
/* Of remote access, from now on. */
void allow(struct ibv_qp *qp, int access);
enum ibv_qp_state state_of(struct ibv_qp *qp);

void post_recv(struct ibv_qp *qp, uint64_t id, uint32_t off, uint32_t length);
struct ibv_wc await_completion(void);
void no_completion(void);
uint64_t now_ms(void);

/* ------------------------------------------------------- the other host */

struct wire_packet packet(uint32_t qpn, uint8_t opcode, uint32_t psn);
void with_bytes(struct wire_packet *p, const void *bytes, uint32_t n);
void say(const struct wire_packet *p);
/* The same with that traffic class, of which 3 says: congestion. */
void say_by(const struct wire_packet *p, uint8_t traffic_class);
/* What is said from now on goes out at the end of that: as one datagram, if the
 * packets are of one size. */
void say_together(bool begin);
/* n bytes as they are, whatever they are. */
void say_bytes(const void *bytes, size_t n);

/* n bytes of text, from off on */
void say_send(const struct ibv_qp *qp, uint8_t opcode, uint32_t psn,
	      uint32_t off, uint32_t n);
void say_fetch_add(const struct ibv_qp *qp, uint32_t psn, uint32_t off,
		   uint64_t add);
void say_rdma(const struct ibv_qp *qp, uint8_t opcode, uint32_t psn,
	      uint32_t rkey, uint32_t total, uint32_t n);

/* Any number below n, each time the same ones. */
uint32_t chance(uint32_t n);
/* Any headers, of which some are nearly right; its opcode may be none. */
struct wire_packet packet_of_chance(uint32_t qpn);

/* The next packet within ms; its payload is in the receiver. */
bool hear_within(struct wire_packet *p, int ms);
struct wire_packet hear(void);
void silence(void);
void hear_answer(uint8_t syndrome, uint32_t psn);
/* ACKs, of which one may stand for all before it. */
void hear_acks(uint32_t psn);

/* ------------------------------------------------------- their tests */

TCase *place_case(void);
TCase *read_case(void);
TCase *xrc_case(void);
