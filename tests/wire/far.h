/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The other host of a test of rdma_cm, by a socket in far-net's namespace: it
 * says and hears messages of the connection manager.  What fails ends the test.
 */
#pragma once

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "../mark.h"
#include "wire/mad.h"

#define FAR_PSN 0x111u

/* The GIDs of this host and of that one: of the IP version of URXE_WIRE. */
extern uint8_t far_here[16], far_there[16];
/* Of that host's QP; more than 200 behind it are no other test's. */
extern uint32_t far_qpn;

void far_begin(void);
void far_end(void);
/* Run a command over there: "ip addr add ...". */
void far_run(const char *command);

/* An address there, by the last byte of it. */
struct sockaddr_storage far_address(uint8_t last, uint16_t port);

/* Wait until this host hears what comes: somebody must have the device open. */
void far_meet(void);
/* Say it, once; no answer is awaited. */
void far_say(const uint8_t mad[MAD_BYTES]);
/* The same, from another address of that host. */
void far_say_from(const uint8_t gid[16], const uint8_t mad[MAD_BYTES]);
/*
 * The next message, which must be that one.  What was heard before is not heard
 * again, however often it is repeated: a busy machine has timers run out.
 */
const uint8_t *far_hear(enum mad_message m);
/* The last one that was heard of them comes again. */
void far_hear_again(enum mad_message m);
/* Nothing new comes for so long. */
void far_silence(int ms);

/* Messages as another host makes them: the answer to what was heard. */
void far_rep(uint8_t mad[MAD_BYTES], const uint8_t *req, uint32_t comm_id);
void far_rtu(uint8_t mad[MAD_BYTES], const uint8_t *rep);
void far_req(uint8_t mad[MAD_BYTES], uint16_t port, uint32_t comm_id);
void far_dreq(uint8_t mad[MAD_BYTES], uint32_t own, uint32_t remote,
	      uint32_t qpn);
void far_drep(uint8_t mad[MAD_BYTES], const uint8_t *dreq);
void far_rej(uint8_t mad[MAD_BYTES], uint32_t own, uint32_t remote,
	     unsigned int message, unsigned int reason);
void far_mra(uint8_t mad[MAD_BYTES], uint32_t own, uint32_t remote,
	     unsigned int message, unsigned int timeout);
