// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connection establishment: REQ, REP and RTU (IB specification, 12.9), and
 * the SIDR_REQ of UD ids, whose answers are in sidr.c.  Called for the
 * commands listen, connect, accept and notify, and from cm_tick() and
 * wire_recv.c.
 *
 * Within a fabric, sending a message means to change the peer's id and to
 * queue an event for it.
 *
 *	client				server
 *	CM_REQ_SENT		REQ ->	new id, CM_REQ_RCVD,
 *					event CONNECT_REQUEST
 *	CM_REP_RCVD,		<- REP	CM_REP_SENT
 *	event CONNECT_RESPONSE
 *	CM_ESTABLISHED		RTU ->	CM_ESTABLISHED, event ESTABLISHED
 *
 * A request that cannot be delivered remains with the client:
 *
 *	CM_F_PARKED, no listener	retried when an id starts to listen;
 *					refused after LISTENER_WAIT_NS
 *	CM_F_PARKED, a listener		its backlog, or a table, was full
 *					(not UD: a SIDR_REQ is refused);
 *					retried by cm_unpark(); UNREACHABLE
 *					after REQ_TIMEOUT_NS
 *	CM_F_UNSENT			a port is not active; sent by
 *					cm_tick() when it is; UNREACHABLE
 *					after REQ_TIMEOUT_NS
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "cm.h"
#include "wire.h"

/*
 * Time for which a request waits for a listener.  Some programs connect
 * before the server has called rdma_listen() on the same port again, and rely
 * on the request not being refused at once.
 */
#define LISTENER_WAIT_NS 100000000ull
/* 16 transmissions of a request, 4.3 s each, as in the kernel */
#define REQ_TIMEOUT_NS 68000000000ull

static bool id_is_ud(const struct cm_id *id)
{
	return id->qp_type == CM_QPT_UD;
}

static uint32_t new_psn(void)
{
	uint32_t psn;

	if (getrandom(&psn, sizeof(psn), GRND_NONBLOCK) != sizeof(psn))
		psn = (uint32_t)clock_now();
	return psn & URXE_PSN_MASK;
}

static void request_send(struct cm *cm, struct cm_id *client);

/* Send parked requests that had no listener and have one now. */
static void requests_retry(struct cm *cm)
{
	struct cm_id *id;

	cm_for_each_id(cm, id)
		if (id->flags & CM_F_PARKED && !id->listener.id &&
		    cm_port_listener(cm, id))
			request_send(cm, id);
}

int cm_listen(struct cm *cm, struct cm_id *id, uint32_t backlog)
{
	union cm_addr wire;
	int ret;

	if (id->flags & CM_F_REUSE) {
		ret = cm_port_exclusive(cm, id);
		if (ret)
			return ret;
		id->flags &= ~(uint32_t)CM_F_REUSE;
	}
	id->cma = CMA_LISTEN;
	if (id->flags & CM_F_DEVICE)
		id->flags |= CM_F_CM; /* connection commands are allowed */
	id->backlog = cm_min(backlog ? backlog : UINT32_MAX, CM_MAX_BACKLOG);
	id->backlog_max = (uint16_t)id->backlog;
	id->order = ++cm->t->order;
	if (cm_wire_address(&wire)) {
		id->flags |= CM_F_WATCHES;
		cm->watch = true;
	}
	requests_retry(cm);
	return 0;
}

/*
 * Return the number of bytes of private data that the request can carry:
 * fewer between IP addresses, which are part of the private data (A11).
 */
static uint8_t request_private_room(const struct cm_id *id)
{
	const uint8_t head = id->src.sa.sa_family == CM_AF_IB ? 0 :
								CM_IP_HEADER;

	return (id_is_ud(id) ? CM_SIDR_REQ_PRIVATE : CM_REQ_PRIVATE) - head;
}

/* Fill in a CONNECT_REQUEST event from the request of @client. */
static void event_set_request(struct cm_event *e, const struct cm_id *client)
{
	struct rdma_ucm_conn_param *p = &e->resp.param.conn;
	const uint8_t room = request_private_room(client);

	if (id_is_ud(client)) {
		cm_fill_ud_private(e, client->private_data, client->private_len,
				   room);
		return;
	}
	cm_fill_private(e, client->private_data, client->private_len, room);
	e->resp.ece = client->ece;
	/* responder resources here are the initiator depth of the peer */
	p->responder_resources = client->initiator_depth;
	p->initiator_depth = client->responder_resources;
	p->flow_control = client->flow_control;
	if (client->qp_type != CM_QPT_XRC_SEND) {
		p->retry_count = client->retry_count;
		p->rnr_retry_count = client->rnr_retry_count;
	}
	p->srq = !!(client->flags & CM_F_SRQ);
	p->qp_num = client->qpn;
}

/* Return the QP type that the peer of @client's QP must have. */
static uint8_t peer_qp_type(const struct cm_id *client)
{
	return client->qp_type == CM_QPT_XRC_SEND ? CM_QPT_XRC_RECV :
						    client->qp_type;
}

/* Initialize the new passive id of listener @l. */
static void passive_init(struct cm *cm, struct cm_id *id, const struct cm_id *l,
			 const struct cm_id *client)
{
	id->ps = l->ps;
	id->qp_type = peer_qp_type(client);
	id->flags = CM_F_DEVICE | CM_F_CM |
		    (l->flags & (CM_F_AFONLY | CM_F_AFONLY_SET));
	id->cma = CMA_CONNECT;
	id->cm = id_is_ud(client) ? CM_SIDR_RCVD : CM_REQ_RCVD;
	id->host = l->host;
	id->src = client->dst;
	id->dst = client->src;
	memcpy(id->sgid, client->dgid, sizeof(id->sgid));
	memcpy(id->dgid, client->sgid, sizeof(id->dgid));
	cm_attach(cm, id);
	id->responder_resources = client->initiator_depth;
	id->initiator_depth = client->responder_resources;
	id->retry_count = client->retry_count;
	id->rnr_retry_count = client->rnr_retry_count;
	id->psn = new_psn();
	id->remote_qpn = client->qpn;
	id->remote_psn = client->psn;
	id->path_mtu = client->path_mtu;
	if (!id_is_ud(client)) {
		id->flags |= CM_F_PATH;
		id->path_flow = client->path_flow;
		id->path_tos = client->path_tos;
		id->path_life = client->path_life;
	}
	if (cm_is_remote(client)) {
		id->flags |= CM_F_WIRE;
		id->remote_comm_id = client->remote_comm_id;
		id->remote_tid = client->remote_tid;
		id->cm_retries = client->cm_retries;
		id->cm_timeout = client->cm_timeout;
		return;
	}
	id->peer = cm_ref_to(cm, client);
	id->remote_comm_id = cm_comm_id(cm, client);
}

/* Return whether the listener accepts the client's QP type; 0: any. */
static bool qp_type_matches(const struct cm_id *l, const struct cm_id *client)
{
	return !l->qp_type || l->qp_type == peer_qp_type(client);
}

/*
 * Park a request.  @l: the listener without free backlog or memory; NULL: no
 * listener was found.
 */
static void request_park(struct cm *cm, struct cm_id *client,
			 const struct cm_id *l)
{
	client->flags |= CM_F_PARKED;
	client->listener = l ? cm_ref_to(cm, l) : (struct cm_ref){ 0 };
	client->order = ++cm->t->order;
	client->deadline =
		clock_now() + (l ? REQ_TIMEOUT_NS : LISTENER_WAIT_NS);
}

/*
 * Create the passive id and send CONNECT_REQUEST to the listener.  Return
 * NULL if the backlog or a table is full.
 */
static struct cm_id *request_put(struct cm *cm, const struct cm_id *client,
				 struct cm_id *l, struct cm_chan *c)
{
	struct cm_event *e = NULL;
	struct cm_id *id = NULL;

	if (l->backlog)
		id = cm_id_new(cm, c);
	if (id)
		e = cm_event_new(cm, l, CM_EV_CONNECT_REQUEST, 0);
	if (!e) {
		if (id)
			cm_id_free(cm, id);
		return NULL;
	}
	passive_init(cm, id, l, client);
	l->backlog--;
	event_set_request(e, client);
	e->resp.id = cm_id_ref(cm, id) - 1;
	e->req = cm_ref_to(cm, id);
	cm_event_send(cm, e);
	return id;
}

struct cm_id *cm_got_request(struct cm *cm, const struct cm_id *client,
			     int *err)
{
	struct cm_chan *c;
	struct cm_id *l, *id;

	do {
		l = cm_port_listener(cm, client);
		if (!l) {
			*err = cm_port_has_listener(cm, client) ? -EPROTOTYPE :
								  -ENOENT;
			return NULL;
		}
		c = cm_chan_at(cm, l->chan);
	} while (!cm_chan_alive(cm, c));
	if (!qp_type_matches(l, client)) {
		*err = -EPROTOTYPE;
		return NULL;
	}
	id = request_put(cm, client, l, c);
	*err = id ? 0 : -ENOMEM;
	return id;
}

/*
 * Deliver the request to listener @l, or refuse or park it.  Return false if
 * the channel of the listener is dead.
 */
static bool request_deliver(struct cm *cm, struct cm_id *client,
			    struct cm_id *l)
{
	struct cm_chan *c = cm_chan_at(cm, l->chan);
	struct cm_id *id;

	if (!cm_chan_alive(cm, c))
		return false;
	if (!qp_type_matches(l, client)) {
		cm_refuse(cm, client, true);
		return true;
	}
	id = request_put(cm, client, l, c);
	if (!id) {
		if (id_is_ud(client))
			cm_refuse(cm, client, true);
		else
			request_park(cm, client, l);
		return true;
	}
	client->peer = cm_ref_to(cm, id);
	client->flags &= ~(uint32_t)CM_F_PARKED;
	client->deadline = id_is_ud(client) ? clock_now() + REQ_TIMEOUT_NS : 0;
	return true;
}

bool cm_device_is_down(const struct cm *cm, const struct cm_id *id)
{
	const struct urxe_dev *dev = cm->f->dev;
	const int peer = fabric_gid_owner(dev, id->dgid);

	const struct urxe_hca *hca = cm_hca(cm, id);

	return URXE_PATH_STATE(load_acquire(
		       &hca->path[peer < 0 ? (int)hca_index(dev, hca) :
					     peer])) != URXE_PORT_ACTIVE;
}

/*
 * Keep the request until the port is active.  On hardware, the request would
 * be retransmitted and lost in that time.
 */
static void request_wait_port(struct cm_id *client)
{
	client->flags &= ~(uint32_t)CM_F_PARKED;
	client->flags |= CM_F_UNSENT;
	client->deadline = clock_now() + REQ_TIMEOUT_NS;
}

static void request_send(struct cm *cm, struct cm_id *client)
{
	struct cm_id *l;

	if (cm_device_is_down(cm, client)) {
		request_wait_port(client);
		return;
	}
	if (cm_is_remote(client)) {
		cm_wire_wait(cm, client);
		return;
	}
	do {
		l = cm_port_listener(cm, client);
		if (!l) {
			request_park(cm, client, NULL);
			return;
		}
	} while (!request_deliver(cm, client, l));
}

/* Return the client that is parked at @l for the longest time, or NULL. */
static struct cm_id *request_first_parked(struct cm *cm, const struct cm_id *l)
{
	struct cm_id *id, *first = NULL;

	cm_for_each_id(cm, id)
		if (id->flags & CM_F_PARKED &&
		    cm_deref(cm, id->listener) == l &&
		    (!first || id->order < first->order))
			first = id;
	return first;
}

void cm_unpark(struct cm *cm, struct cm_id *l)
{
	struct cm_id *client;

	/* if the listener was destroyed, its clients find another one */
	while (l->cma != CMA_LISTEN || l->backlog) {
		client = request_first_parked(cm, l);
		if (!client)
			return;
		client->flags &= ~(uint32_t)CM_F_PARKED;
		request_send(cm, client);
		if (l->cma == CMA_LISTEN && client->flags & CM_F_PARKED)
			return; /* no memory for an id or event */
	}
}

void cm_send_unsent(struct cm *cm, struct cm_id *client)
{
	client->flags &= ~(uint32_t)CM_F_UNSENT;
	client->deadline = 0;
	cm_sent_request(cm, client);
	request_send(cm, client);
}

static bool qp_type_connects(const struct cm_id *id)
{
	return id->qp_type == CM_QPT_RC || id->qp_type == CM_QPT_UC ||
	       id->qp_type == CM_QPT_UD || id->qp_type == CM_QPT_XRC_SEND;
}

/*
 * Prepare the request and, if the port is active, pass it to
 * cm_sent_request(), which sends the MAD if CM_F_WIRE is set.  The request is
 * delivered to no id of this fabric.
 */
int cm_connect_fail(struct cm *cm, struct cm_id *id,
		    const struct rdma_ucm_conn_param *p,
		    const struct rdma_ucm_ece *ece)
{
	if (id->cma != CMA_ROUTE_RESOLVED || !qp_type_connects(id) ||
	    p->private_data_len > request_private_room(id))
		return -EINVAL;
	id->cma = CMA_CONNECT;
	id->flags |= CM_F_CM | (p->srq ? CM_F_SRQ : 0);
	id->cm = id_is_ud(id) ? CM_SIDR_SENT : CM_REQ_SENT;
	id->qpn = p->qp_num & URXE_QPN_MASK;
	id->psn = new_psn();
	id->responder_resources = p->responder_resources;
	id->initiator_depth = p->initiator_depth;
	if (id->qp_type == CM_QPT_XRC_SEND) { /* it has no responder */
		id->responder_resources = 0;
		id->flags &= ~(uint32_t)CM_F_SRQ;
	}
	id->flow_control = p->flow_control & 1;
	id->retry_count = cm_min(p->retry_count, CM_MAX_RETRIES);
	id->rnr_retry_count = cm_min(p->rnr_retry_count, CM_MAX_RETRIES);
	id->ece = *ece;
	id->private_len = p->private_data_len;
	memcpy(id->private_data, p->private_data, p->private_data_len);
	id->deadline = clock_now() + REQ_TIMEOUT_NS;
	cm->watch = true;
	if (!cm_device_is_down(cm, id))
		cm_sent_request(cm, id);
	return 0;
}

int cm_connect(struct cm *cm, struct cm_id *id,
	       const struct rdma_ucm_conn_param *p,
	       const struct rdma_ucm_ece *ece)
{
	int ret = cm_connect_fail(cm, id, p, ece);

	if (ret)
		return ret;
	id->deadline = 0;
	request_send(cm, id);
	return 0;
}

void cm_got_rep(struct cm *cm, struct cm_id *client, const struct cm_id *server,
		const struct rdma_ucm_conn_param *p,
		const struct rdma_ucm_ece *ece)
{
	struct rdma_ucm_conn_param *out;
	struct cm_event *e;

	client->cm = CM_REP_RCVD;
	client->deadline = 0;
	client->remote_qpn = server->qpn;
	client->remote_psn = server->psn;
	client->responder_resources = p->initiator_depth;
	client->initiator_depth = p->responder_resources;
	client->rnr_retry_count = cm_min(p->rnr_retry_count, CM_MAX_RETRIES);
	e = cm_event_new(cm, client, CM_EV_CONNECT_RESPONSE, 0);
	if (!e)
		return;
	out = &e->resp.param.conn;
	cm_fill_private(e, p->private_data, p->private_data_len,
			CM_REP_PRIVATE);
	out->responder_resources = p->initiator_depth;
	out->initiator_depth = p->responder_resources;
	out->flow_control = p->flow_control & 1;
	out->rnr_retry_count = client->rnr_retry_count;
	out->srq = !!p->srq;
	out->qp_num = server->qpn;
	e->resp.ece = *ece;
	cm_event_send(cm, e);
}

/* Send the REP of the server. */
static int reply_send(struct cm *cm, struct cm_id *id,
		      const struct rdma_ucm_conn_param *p,
		      const struct rdma_ucm_ece *ece)
{
	struct cm_id *client = cm_deref(cm, id->peer);

	if (id->cm != CM_REQ_RCVD || p->private_data_len > CM_REP_PRIVATE ||
	    (!client && !cm_is_remote(id)))
		return -EINVAL;
	id->cm = CM_REP_SENT;
	id->qpn = p->qp_num & URXE_QPN_MASK;
	id->responder_resources = p->responder_resources;
	id->initiator_depth = p->initiator_depth;
	cm_sent_rep(cm, id, p, ece);
	if (cm_is_remote(id)) {
		cm_wire_keep_reply(id, p, ece);
		cm_wire_wait(cm, id);
		return 0;
	}
	client->remote_comm_id = cm_comm_id(cm, id);
	cm_got_rep(cm, client, id, p, ece);
	return 0;
}

/*
 * Copies of the RTU after an MRA.  The server that got the MRA does not repeat
 * its REP for 68 s, and would wait that long if the RTU is lost.
 */
#define RTUS_AFTER_MRA 3

/* Send the RTU of the client. */
static int rtu_send(struct cm *cm, struct cm_id *id)
{
	struct cm_id *server = cm_deref(cm, id->peer);
	unsigned int n = id->flags & CM_F_MRA ? RTUS_AFTER_MRA : 1;

	if (id->cm != CM_REP_RCVD)
		return -EINVAL;
	id->cm = CM_ESTABLISHED;
	while (n--)
		cm_sent_rtu(cm, id);
	if (server && server->cm == CM_REP_SENT) {
		server->cm = CM_ESTABLISHED;
		cm_event_post(cm, server, CM_EV_ESTABLISHED, 0);
	} else if (server && server->cm == CM_DREQ_SENT) {
		cm_got_dreq(cm, id); /* DREQ was ignored in CM_REP_RCVD */
	}
	return 0;
}

int cm_accept(struct cm *cm, struct cm_id *id,
	      const struct rdma_ucm_conn_param *p,
	      const struct rdma_ucm_ece *ece, uint64_t uid)
{
	static const struct rdma_ucm_conn_param nothing;
	int ret;

	if (id->cma != CMA_CONNECT)
		return -EINVAL;
	if (id_is_ud(id))
		ret = cm_send_sidr_reply(cm, id, p ? p : &nothing);
	else if (p)
		ret = reply_send(cm, id, p, ece);
	else
		ret = rtu_send(cm, id);
	if (ret) {
		cm_reject(cm, id, CM_REJ_CONSUMER, NULL, 0);
		return ret;
	}
	if (p)
		id->uid = uid;
	cm->watch = true;
	return 0;
}

int cm_notify(struct cm *cm, struct cm_id *id, uint32_t event)
{
	if (!(id->flags & CM_F_CM))
		return -EINVAL;
	if (event == CM_PATH_MIG && id->cm == CM_ESTABLISHED)
		return 0;
	if (event != CM_COMM_EST)
		return -EINVAL;
	if (id->cm == CM_ESTABLISHED)
		return -EISCONN;
	if (id->cm != CM_REP_SENT)
		return -EINVAL;
	id->cm = CM_ESTABLISHED;
	cm_event_post(cm, id, CM_EV_ESTABLISHED, 0);
	return 0;
}
