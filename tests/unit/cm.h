/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The connection manager's tables, with a channel for a server and one for a
 * client, and what both do.  Whatever fails ends the test.
 */
#pragma once

#include "cm/cm.h"
#include "unit.h"

#define PORT 7000 /* of the listener */
#define UID_L 0x11
#define UID_S 0x22
#define UID_C 0x33

extern const struct rdma_ucm_ece no_ece;
extern struct cm cm;
extern int server_fd, client_fd;

/* Tables in a new fabric, locked, with two channels. */
void setup(void);
/* The channel that fd is. */
struct cm_chan *chan(int fd);
/* Settle, and give the lock back for a moment. */
void next_command(void);

union cm_addr ip4(uint16_t port);
struct cm_id *new_id(int fd, uint64_t uid, uint8_t type);
struct cm_id *listener(uint8_t type, uint32_t backlog);
/* It has asked the listener for a connection. */
struct cm_id *client(uint8_t type);

/* The channel has no event. */
void none(int fd);
/* The next event of the channel, which must be this one. */
struct rdma_ucm_event_resp expect(int fd, uint32_t event, int status);
/* The server's next event is a request: the id that it makes. */
struct cm_id *request(void);
void accept_it(struct cm_id *id);
/* A connection of both. */
void establish(struct cm_id **s, struct cm_id **c);
/* As if id's timer had run out. */
void expire(struct cm_id *id);
