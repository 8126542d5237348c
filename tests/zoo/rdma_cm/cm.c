// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../cm/address.h"
#include "cm.h"

#define RESOLVE_MS 60000

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(99);
}

static void end_open(struct cm_end *e)
{
	e->chan = rdma_create_event_channel();
	must(e->chan, "rdma_create_event_channel");
	must(!fcntl(e->chan->fd, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
}

static void end_setup(struct cm_end *e)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 4,
						  .max_recv_wr = 4,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 },
					 .sq_sig_all = 1 };

	must(!rdma_create_qp(e->id, NULL, &attr), "rdma_create_qp");
	e->mr = rdma_reg_msgs(e->id, e->buf, sizeof(e->buf));
	must(e->mr, "rdma_reg_msgs");
}

void cm_open(struct cm *c)
{
	struct sockaddr_in a = own_ip4();

	memset(c, 0, sizeof(*c));
	end_open(&c->server);
	end_open(&c->client);
	must(!rdma_create_id(c->server.chan, &c->listener, NULL, RDMA_PS_TCP) &&
		     !rdma_bind_addr(c->listener, (struct sockaddr *)&a) &&
		     !rdma_listen(c->listener, 4),
	     "rdma_listen");
	a.sin_port = rdma_get_src_port(c->listener);
	must(!rdma_create_id(c->client.chan, &c->client.id, NULL,
			     RDMA_PS_TCP) &&
		     !rdma_resolve_addr(c->client.id, NULL,
					(struct sockaddr *)&a, RESOLVE_MS),
	     "rdma_resolve_addr");
}

/* Wait up to @ms for an event.  Return NULL if none arrives. */
static struct rdma_cm_event *event_get(struct cm_end *e, int ms)
{
	struct pollfd p = { .fd = e->chan->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&p, 1, ms) != 1 || rdma_get_cm_event(e->chan, &event))
		return NULL;
	return event;
}

int cm_event(struct cm_end *e)
{
	struct rdma_cm_event *event = event_get(e, 0);
	int type = event ? (int)event->event : -1;

	if (event)
		rdma_ack_cm_event(event);
	return type;
}

void cm_await(struct cm_end *e, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = event_get(e, RESOLVE_MS);

	must(event, "rdma_get_cm_event");
	expect(event->event == type, rdma_event_str(event->event));
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		e->id = event->id;
	rdma_ack_cm_event(event);
}

void cm_connect(struct cm *c)
{
	struct rdma_conn_param p = { .retry_count = 7 };

	cm_await(&c->client, RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!rdma_resolve_route(c->client.id, RESOLVE_MS),
	     "rdma_resolve_route");
	cm_await(&c->client, RDMA_CM_EVENT_ROUTE_RESOLVED);
	end_setup(&c->client);
	must(!rdma_connect(c->client.id, &p), "rdma_connect");
	cm_await(&c->server, RDMA_CM_EVENT_CONNECT_REQUEST);
	end_setup(&c->server);
	must(!rdma_post_recv(c->server.id, NULL, c->server.buf,
			     sizeof(c->server.buf), c->server.mr),
	     "rdma_post_recv");
	must(!rdma_accept(c->server.id, &p), "rdma_accept");
	cm_await(&c->client, RDMA_CM_EVENT_ESTABLISHED);
}

void cm_send(struct cm_end *e)
{
	struct ibv_wc wc;
	int n;

	must(!rdma_post_send(e->id, NULL, e->buf, sizeof(e->buf), e->mr, 0),
	     "rdma_post_send");
	while (!(n = ibv_poll_cq(e->id->send_cq, 1, &wc)))
		;
	expect(n == 1 && !wc.status, "the send fails");
}

bool cm_receive(struct cm_end *e)
{
	struct ibv_wc wc;

	return ibv_poll_cq(e->id->recv_cq, 1, &wc) == 1 && !wc.status;
}
