/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two endpoints connected by rdma_cm, each with an event channel */
#pragma once

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "../zoo.h"

struct cm_end {
	struct rdma_event_channel *chan;
	struct rdma_cm_id *id; /* with its own CQs */
	struct ibv_mr *mr;
	char buf[64];
};

struct cm {
	struct rdma_cm_id *listener;
	struct cm_end server, client;
};

/* Create the ids, listen, and begin to resolve the listener's address. */
void cm_open(struct cm *c);
/*
 * Connect.  On return the client has received ESTABLISHED, and the server has
 * posted a receive; the server's ESTABLISHED is not yet read.
 */
void cm_connect(struct cm *c);

/* Acknowledge the next event and return its type, or -1 if there is none. */
int cm_event(struct cm_end *e);
/* Wait for the next event, which must be of this type. */
void cm_await(struct cm_end *e, enum rdma_cm_event_type type);
/* Send buf and wait for the completion. */
void cm_send(struct cm_end *e);
/* Return whether a message was received. */
bool cm_receive(struct cm_end *e);
