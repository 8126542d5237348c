/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tests of the connection manager share. */
#pragma once

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base.h"

/* The same for IPv6; false if there is none at all. */
bool ip6(struct sockaddr_in6 *a, int port);
#define SA(a) ((struct sockaddr *)(a))
#define PATIENCE_MS 60000 /* what must happen and takes so long hangs */

struct rdma_event_channel *new_channel(void);
struct rdma_cm_id *new_id(struct rdma_event_channel *ch,
			  enum rdma_port_space ps);

/*
 * The next event, which must be of that type and status; it must be
 * acknowledged.
 */
struct rdma_cm_event *expect(struct rdma_event_channel *ch,
			     enum rdma_cm_event_type type, int status);
/* The same, and acknowledge it. */
void pass(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
	  int status);
/* Nothing comes for ms. */
void expect_nothing(struct rdma_event_channel *ch, int ms);

/* A listener on a new channel; a port of 0 is chosen. */
struct rdma_cm_id *listen_on(struct sockaddr *a, enum rdma_port_space ps,
			     int backlog);
int port_of(struct rdma_cm_id *id);

/* A client on a new channel, up to the resolved route. */
struct rdma_cm_id *client_to(struct sockaddr *a, enum rdma_port_space ps);
/*
 * In the IB port space, for QPs of that type: a listener, or a client up to
 * the resolved route, on a channel of its own.
 */
struct rdma_cm_id *ib_listen_on(struct sockaddr *a, enum ibv_qp_type type);
struct rdma_cm_id *ib_client_to(struct sockaddr *a, enum ibv_qp_type type);
/* With a QP of that id's type. */
void give_qp(struct rdma_cm_id *id);
/* Parameters with private data. */
struct rdma_conn_param param(const void *data, int len);
void start_connect(struct rdma_cm_id *id);

/* The request that waits at a listener, as a new id; not accepted. */
struct rdma_cm_id *next_request(struct rdma_cm_id *listener);
void accept_it(struct rdma_cm_id *id);

/* One receive of up to 256 bytes, to be posted before it is waited for. */
struct inbox {
	struct ibv_mr *mr;
	char data[256]; /* behind 40 bytes of header where that is UD's */
};
void post_inbox(struct rdma_cm_id *id, struct inbox *in);
/* Has something come? Waits for up to ms. */
bool inbox_filled(struct rdma_cm_id *id, int ms);

/* Connected, both with QPs, each on a channel of its own. */
struct both {
	struct rdma_cm_id *listener, *client, *server;
};
struct both connect_both(void);

/* Destroy an id with its QP; its channel, too, if that has no other. */
void end_id(struct rdma_cm_id *id, bool channel);

/* A process with a line to it. */
struct other {
	pid_t pid;
	int fd;
};
struct other spawn(void (*fn)(int fd, void *arg), void *arg);
void tell(int fd, int number);
int hear(int fd);
void finish(struct other o); /* it must exit with 0 */
void kill_it(struct other o);

/*
 * Resolve an address and a route and connect, so many times: how many of their
 * events a second thread has before the command returns.  Once a process.
 */
int early_events(int rounds);

double now(void); /* seconds */

/* What librdmacm or a killed child leaves behind is no leak of ours. */
void may_leak(void);
