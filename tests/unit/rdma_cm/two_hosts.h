/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fixture of tests of the connection manager between two hosts: two fabrics in
 * one process, and messages between them that a test delivers, loses or
 * duplicates.
 */
#pragma once

#include "cm.h"
#include "cm/wire.h"

#define SENT_MAX 64

/*
 * The state of the host that is not current; cm, server_fd and client_fd
 * belong to the current one.
 */
struct host {
	struct cm cm;
	int server_fd, client_fd;
};
extern struct host host[2];
extern int here; /* the current host */
/* QP numbers of the next client and server */
extern uint32_t client_qpn, server_qpn;

/* The messages that were sent, and were neither delivered nor lost. */
struct sent_mad {
	int to;
	struct wire_path path;
	uint8_t mad[MAD_BYTES];
};
extern struct sent_mad sent[SENT_MAX];
extern unsigned int n_sent;

/* Create the two fabrics; host 0 is current. */
void setup_hosts(void);
void end_hosts(void);
/* Make this host the current one. */
void use_host(int which);
/* The host's address: 10.1.2.3 or 10.1.2.4. */
union cm_addr addr_of(int which, uint16_t port);

/* Check the types of the messages on their way, and leave them there. */
void expect_sent(const char *names);
/* Check the types of the messages on their way, and drop them. */
void lose_sent(const char *names);
/*
 * Check the types of the messages on their way, and deliver them.  Responses
 * are on their way afterwards.
 */
void deliver_sent(const char *names);
void deliver_one(const struct sent_mad *l);

/* Create a listener on host 1. */
struct cm_id *far_listener(uint8_t type, uint32_t backlog);
/* Create a client on host 0 that has sent its request. */
struct cm_id *near_client(uint8_t type);
/* The steps of a connection, on both hosts. */
struct cm_id *far_request(void);
void far_accept(struct cm_id *s);
void far_expect(uint32_t event, int status);
void confirm(struct cm_id *c);
void connected(struct cm_id **s, struct cm_id **c);
void far_disconnect(struct cm_id *s);
