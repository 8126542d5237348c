/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two ends that rdma_cm connects, each with an event channel. */
#pragma once

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "zoo.h"

struct cm_end {
	struct rdma_event_channel *chan;
	struct rdma_cm_id *id; /* it has CQs of its own */
	struct ibv_mr *mr;
	char buf[64];
};

struct cm {
	struct rdma_cm_id *listener;
	struct cm_end server, client;
};

/* Up to ROUTE_RESOLVED: the client's id, which goes to the listener. */
void cm_open(struct cm *c);
/*
 * And on, until the client has its ESTABLISHED; the server has posted a
 * receive, and its ESTABLISHED is to come.
 */
void cm_connect(struct cm *c);

/* The next event, acknowledged, if there is one; else -1. */
int cm_event(struct cm_end *e);
/* It is this one. */
void cm_await(struct cm_end *e, enum rdma_cm_event_type type);
/* Send buf, and wait until that is completed. */
void cm_send(struct cm_end *e);
/* Did a message come? */
bool cm_receive(struct cm_end *e);
