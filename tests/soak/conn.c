// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections made with librdmacm.  Each worker listens, and connects to one
 * other worker at a time.  The caller sends a message, and the guest (the
 * accepted connection at the other end) answers with the same bytes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "../cm/address.h"
#include "soak.h"

#define ROUNDS 8
#define BYTES 1024
#define GUESTS 16
#define RESOLVE_MS 2000

struct conn {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char buf[2][BYTES]; /* to send and to receive */
	uint32_t rounds, seed;
	bool up, over;
	uint64_t since;
};

static struct rdma_event_channel *chan;
static struct rdma_cm_id *listener;
static struct conn *caller, *guest[GUESTS];

static void conn_free(struct conn **p)
{
	struct conn *c = *p;

	if (!c)
		return;
	me->waits_for = WAITS_FOR_ALL;
	me->doing = "closing a connection";
	/* destroy the QP before the memory of its WRs */
	if (c->id && c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->mr)
		must("rdma_dereg_mr", !rdma_dereg_mr(c->mr));
	if (c->id)
		must("rdma_destroy_id", !rdma_destroy_id(c->id));
	me->waits_for = 0;
	free(c);
	*p = NULL;
}

static bool listener_open(void)
{
	struct sockaddr_in a = own_ip4();

	if (!made("rdma_create_event_channel",
		  chan = rdma_create_event_channel()))
		return false;
	fcntl(chan->fd, F_SETFL, O_NONBLOCK);
	if (!made("rdma_create_id",
		  !rdma_create_id(chan, &listener, NULL, RDMA_PS_TCP)))
		return false;
	if (!made("rdma_bind_addr",
		  !rdma_bind_addr(listener, (struct sockaddr *)&a)) ||
	    !made("rdma_listen", !rdma_listen(listener, 8)))
		return false;
	me->port = ntohs(rdma_get_src_port(listener));
	return true;
}

static bool conn_setup(struct conn *c)
{
	struct ibv_qp_init_attr a = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4,
			 .max_recv_wr = 4,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct before b = call_begins("rdma_create_qp");

	/* EINVAL: the caller of a guest may have died */
	if (rdma_create_qp(c->id, NULL, &a) && (c == caller || errno != EINVAL))
		return made_or_refused("rdma_create_qp", false, &b);
	return c->id->qp &&
	       made("rdma_reg_msgs",
		    c->mr = rdma_reg_msgs(c->id, c->buf, sizeof(c->buf))) &&
	       made("rdma_post_recv",
		    !rdma_post_recv(c->id, NULL, c->buf[1], BYTES, c->mr));
}

static void conn_say(struct conn *c)
{
	c->seed = rnd(UINT32_MAX);
	fill(c->buf[0], BYTES, c->seed);
	if (rdma_post_send(c->id, NULL, c->buf[0], BYTES, c->mr, 0))
		c->over = true;
}

static void call(void)
{
	struct sockaddr_in a = own_ip4();
	uint32_t port = sh->slot[rnd(sh->n)].port;

	if (!port)
		return;
	a.sin_port = htons((uint16_t)port);
	caller = calloc(1, sizeof(*caller));
	if (!made("calloc", caller))
		return;
	caller->since = now_ms();
	if (!made("rdma_create_id",
		  !rdma_create_id(chan, &caller->id, caller, RDMA_PS_TCP)) ||
	    !made("rdma_resolve_addr",
		  !rdma_resolve_addr(caller->id, NULL, (struct sockaddr *)&a,
				     RESOLVE_MS)))
		conn_free(&caller);
}

static void answer(struct rdma_cm_id *id)
{
	struct rdma_conn_param p = { .rnr_retry_count = 7 };
	struct conn *c = NULL;
	uint32_t i;

	for (i = 0; i < GUESTS && guest[i]; i++)
		;
	if (i < GUESTS)
		c = calloc(1, sizeof(*c));
	if (!c) {
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	guest[i] = c;
	c->id = id;
	c->since = now_ms();
	id->context = c;
	/* the caller may have died */
	if (!conn_setup(c) || rdma_accept(id, &p))
		c->over = true;
}

static void event_handle(struct rdma_cm_event *e)
{
	struct rdma_conn_param p = { .retry_count = 7, .rnr_retry_count = 7 };
	struct conn *c = e->id->context;

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(e->id, RESOLVE_MS))
			c->over = true;
		return;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (!conn_setup(c) || rdma_connect(e->id, &p))
			c->over = true;
		return;
	case RDMA_CM_EVENT_ESTABLISHED:
		c->up = true;
		if (c == caller)
			conn_say(c);
		return;
	default:
		if (c)
			c->over = true;
		return;
	}
}

static void events_handle(void)
{
	struct before b = call_begins("rdma_get_cm_event");
	struct rdma_cm_event *e, copy;

	while (!rdma_get_cm_event(chan, &e)) {
		copy = *e;
		rdma_ack_cm_event(e);
		if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			answer(copy.id);
		else
			event_handle(&copy);
	}
	timed_out(&b);
}

static void conn_receive(struct conn *c)
{
	struct ibv_wc wc;

	if (!c->mr || !c->id->qp)
		return;
	while (ibv_poll_cq(c->id->send_cq, 1, &wc) > 0)
		c->over |= wc.status != IBV_WC_SUCCESS;
	if (ibv_poll_cq(c->id->recv_cq, 1, &wc) <= 0)
		return;
	if (wc.status != IBV_WC_SUCCESS) {
		c->over = true;
		return;
	}
	if (c == caller && !filled(c->buf[1], BYTES, c->seed))
		broken("a connection's answer is another one");
	memcpy(c->buf[0], c->buf[1], BYTES);
	c->rounds++;
	if (rdma_post_recv(c->id, NULL, c->buf[1], BYTES, c->mr))
		c->over = true;
	else if (c != caller)
		c->over |= !!rdma_post_send(c->id, NULL, c->buf[0], BYTES,
					    c->mr, 0);
	else if (c->rounds < ROUNDS)
		conn_say(c);
	else
		c->over = true;
}

static void conn_step(struct conn **p)
{
	struct conn *c = *p;

	if (!c)
		return;
	conn_receive(c);
	if (!c->over && now_ms() - c->since < LIMIT_MS)
		return;
	if (c->up && c == caller && c->rounds == ROUNDS)
		me->connections++;
	if (c->up)
		rdma_disconnect(c->id); /* may be disconnected already */
	conn_free(p);
}

void conns_step(void)
{
	uint32_t i;

	if (lock_is_stopped())
		return; /* each call of librdmacm takes 2 s */
	if (!listener && !listener_open()) {
		conns_close();
		return;
	}
	events_handle();
	if (!caller && rnd(50) == 0)
		call();
	conn_step(&caller);
	for (i = 0; i < GUESTS; i++)
		conn_step(&guest[i]);
}

void conns_close(void)
{
	uint32_t i;

	me->port = 0;
	for (i = 0; i < GUESTS; i++)
		conn_free(&guest[i]);
	conn_free(&caller);
	if (listener)
		must("rdma_destroy_id", !rdma_destroy_id(listener));
	if (chan)
		rdma_destroy_event_channel(chan);
	listener = NULL;
	chan = NULL;
}
