/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Helpers of the connection manager tests that use librdmacm.  They assert
 * that the calls succeed.  Called by the tests and by the processes that
 * spawn() creates.
 */
#pragma once

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base.h"

/*
 * Store in @a an IPv6 address of this host, ::1 if there is no other.  False:
 * IPv6 cannot be used.
 */
bool ip6(struct sockaddr_in6 *a, int port);
#define SA(a) ((struct sockaddr *)(a))
#define PATIENCE_MS 60000 /* deadline of events that must come */

struct rdma_event_channel *new_channel(void);
struct rdma_cm_id *new_id(struct rdma_event_channel *ch,
			  enum rdma_port_space ps);

/*
 * Wait for the next event and return it.  Its type and status must be the
 * given ones.  The caller acknowledges it.
 */
struct rdma_cm_event *expect(struct rdma_event_channel *ch,
			     enum rdma_cm_event_type type, int status);
/* Wait for the next event as expect() and acknowledge it. */
void pass(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
	  int status);
/* Assert that no event arrives within @ms. */
void expect_nothing(struct rdma_event_channel *ch, int ms);

/* Create a listener on a new channel.  Port 0: any free port. */
struct rdma_cm_id *listen_on(struct sockaddr *a, enum rdma_port_space ps,
			     int backlog);
int port_of(struct rdma_cm_id *id);

/* Create an id on a new channel and resolve the address and route to @a. */
struct rdma_cm_id *client_to(struct sockaddr *a, enum rdma_port_space ps);
/*
 * IB port space, QPs of type @type: create a listener, or an id with resolved
 * route.  Each has a channel of its own.
 */
struct rdma_cm_id *ib_listen_on(struct sockaddr *a, enum ibv_qp_type type);
struct rdma_cm_id *ib_client_to(struct sockaddr *a, enum ibv_qp_type type);
/* Create a QP of the id's QP type. */
void give_qp(struct rdma_cm_id *id);
/* Return connection parameters with @len bytes of private data. */
struct rdma_conn_param param(const void *data, int len);
void start_connect(struct rdma_cm_id *id);

/*
 * Wait for a CONNECT_REQUEST and return its new id, which is not accepted
 * yet.
 */
struct rdma_cm_id *next_request(struct rdma_cm_id *listener);
void accept_it(struct rdma_cm_id *id);

/* A receive of up to 256 bytes.  post_inbox() registers and posts it. */
struct inbox {
	struct ibv_mr *mr;
	char data[256]; /* UD: preceded by a 40-byte GRH */
};
void post_inbox(struct rdma_cm_id *id, struct inbox *in);
/* Wait up to @ms for a receive completion.  Return whether there was one. */
bool inbox_filled(struct rdma_cm_id *id, int ms);

/* Q_Key of the port space UDP */
#define UDP_QKEY 0x01234567
/*
 * Join @group with @flags and return an address handle for it.  The
 * parameters of the event are stored in @out, unless it is NULL.
 */
struct ibv_ah *group_join(struct rdma_cm_id *id, struct sockaddr *group,
			  int flags, struct rdma_ud_param *out);
/* Send @text to the group of @ah and wait for the completion. */
void group_send(struct rdma_cm_id *id, struct ibv_ah *ah, char *text);

/* Two connected ids with QPs, each on a channel of its own. */
struct both {
	struct rdma_cm_id *listener, *client, *server;
};
struct both connect_both(void);

/* Destroy an id and its QP, and its channel if @channel is set. */
void end_id(struct rdma_cm_id *id, bool channel);

/* A forked process and a socket to it: send_int() and receive_int() pass
 * integers. */
struct other {
	pid_t pid;
	int fd;
};
struct other spawn(void (*fn)(int fd, void *arg), void *arg);
void send_int(int fd, int number);
int receive_int(int fd);
void finish(struct other o); /* wait for it; it must exit with 0 */
void kill_it(struct other o);

/*
 * Run @rounds of resolve address, resolve route and connect.  Return the
 * number of events that a second thread received before the command that
 * caused them returned.  Call it once a process: it changes the thread's CPU
 * affinity and priority.
 */
int early_events(int rounds);

double now(void); /* CLOCK_MONOTONIC, in seconds */

/*
 * Disable LeakSanitizer, if present, for what the calling thread allocates
 * from now on: librdmacm, and killed or cancelled code, does not free all of
 * it.
 */
void may_leak(void);
