/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The remote host of a test of rdma_cm: the test itself, with a socket in the
 * network namespace that far-net makes.  It sends and receives MADs of the
 * connection manager (IB chapter 12).
 *
 * All functions are called in the test's thread, between far_begin() and
 * far_end(), which are a fixture of test_cm.c.  Any failure, also a message
 * that does not arrive in 60 s, ends the test.
 */
#pragma once

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "../../mark.h"
#include "wire/mad.h"

#define FAR_PSN 0x111u

/*
 * GIDs of this host and of the remote host, for the IP version of URXE_WIRE.
 */
extern uint8_t far_here[16], far_there[16];
/*
 * A QPN of the remote host.  Neither it nor the 254 QPNs that follow it are
 * used by other tests.
 */
extern uint32_t far_qpn;

/* Open the remote host's socket, and close it. */
void far_begin(void);
void far_end(void);
/* Run a shell command in the remote host's namespace: "ip addr add ...". */
void far_run(const char *command);

/* Return far_there with another last byte, as a socket address. */
struct sockaddr_storage far_address(uint8_t last, uint16_t port);

/*
 * Wait until this host receives MADs.  A process must have the device open.
 */
void far_meet(void);
/* Send a MAD once.  Does not wait for a response. */
void far_say(const uint8_t mad[MAD_BYTES]);
/* Send a MAD from another address of the remote host. */
void far_say_from(const uint8_t gid[16], const uint8_t mad[MAD_BYTES]);
/*
 * Receive the next new MAD and return it; it must be of type @m.  Repeated
 * MADs are skipped: on a busy machine a timer may expire before the response
 * arrives.  The result is valid until far_begin() is called again.
 */
const uint8_t *far_receive(enum mad_message m);
/*
 * Wait for a MAD of type @m that was received before.  A new MAD is a
 * failure.
 */
void far_receive_again(enum mad_message m);
/* Check that no new MAD arrives, until @ms pass without any datagram. */
void far_silence(int ms);

/*
 * Build MADs as another implementation does.  REP, RTU and DREP take the MAD
 * that they answer.  @own and @remote are the communication IDs of the remote
 * host and of this host.
 */
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
