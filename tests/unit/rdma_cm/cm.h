/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fixture of the connection manager's tests (kernel-shim/cm): the tables of a
 * new fabric with two event channels, one of a server and one of a client,
 * and the steps of a connection.  A failed assertion ends the test.
 *
 * The test holds the lock of the tables between setup() and cm_unlock().  All
 * functions but setup() are called with the lock held.
 */
#pragma once

#include "cm/cm.h"
#include "../unit.h"

#define PORT 7000 /* the listener's port */
/* UIDs of the listener, of the id made by accept_it(), and of the client */
#define UID_L 0x11
#define UID_S 0x22
#define UID_C 0x33

extern const struct rdma_ucm_ece no_ece;
extern struct cm cm;
extern int server_fd, client_fd;

/* Create a fabric with two channels, and lock the tables. */
void setup(void);
/* Return the channel whose FIFO is open as @fd. */
struct cm_chan *chan(int fd);
/* End a command as a caller of cm.h does: settle, unlock, and lock again. */
void next_command(void);

/* Return 10.1.2.3 and @port. */
union cm_addr ip4(uint16_t port);
/*
 * Create an id without an address.  UD has port space RDMA_PS_UDP, any other
 * QP type has RDMA_PS_TCP.
 */
struct cm_id *new_id(int fd, uint64_t uid, uint8_t type);
/* Create an id of the server, bind it to PORT and listen. */
struct cm_id *listener(uint8_t type, uint32_t backlog);
/* Return an id that has sent a connection request to PORT. */
struct cm_id *client(uint8_t type);

/* Check that the channel has no event and its FIFO is not readable. */
void none(int fd);
/* Pop the next event of the channel; check its type and status. */
struct rdma_ucm_event_resp expect(int fd, uint32_t event, int status);
/* Pop the server's next event, a connection request.  Return its new id. */
struct cm_id *request(void);
/* Accept request @id for QP 0x888; the id gets UID_S. */
void accept_it(struct cm_id *id);
/* Connect a new RC client with the server.  A listener must exist. */
void establish(struct cm_id **s, struct cm_id **c);
/* Let the timer of @id expire now. */
void expire(struct cm_id *id);
