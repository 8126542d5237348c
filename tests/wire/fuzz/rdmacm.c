// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "rdmacm.h"
#include "wire/mad.h"
#include "wire/socket.h"

#define PORT 7471
#define BACKLOG 3
#define IDS 8 /* limit of ids at a time, without the listeners */
#define RECEIVED 4

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener[2]; /* RDMA_PS_TCP, RDMA_PS_UDP */
static struct rdma_cm_id *ids[IDS];

/* ------------------------------------------------------- the host's ids */

static int slot_of(const struct rdma_cm_id *id)
{
	int i;

	for (i = 0; i < IDS; i++)
		if (ids[i] == id)
			return i;
	return -1;
}

static void id_end(int i)
{
	if (ids[i])
		must(!rdma_destroy_id(ids[i]));
	ids[i] = NULL;
}

/* Keep the id of a connect request, or reject it if no slot is free. */
static void id_came(struct rdma_cm_id *id)
{
	const int i = slot_of(NULL);

	if (i < 0) {
		rdma_reject(id, NULL, 0);
		must(!rdma_destroy_id(id));
		return;
	}
	ids[i] = id;
}

static struct rdma_conn_param parameters(void)
{
	return (struct rdma_conn_param){
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 2,
		.rnr_retry_count = 2,
		.qp_num = host.qp[QP_RC].qp->qp_num,
	};
}

/* Process an event, with the next step of the connection setup. */
static void event(struct rdma_cm_event *e)
{
	struct rdma_cm_id *id = e->id;
	const enum rdma_cm_event_type what = e->event;
	struct rdma_conn_param p = parameters();

	must(!rdma_ack_cm_event(e));
	switch (what) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		rdma_resolve_route(id, 1000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		rdma_connect(id, &p);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		id_came(id);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		rdma_establish(id);
		break;
	default:
		break;
	}
}

static void events(void)
{
	struct rdma_cm_event *e;

	while (!rdma_get_cm_event(channel, &e))
		event(e);
}

static void address(union wire_sockaddr *a, const uint8_t gid[16])
{
	wire_sockaddr_of(a, gid, PORT, 0);
}

static void id_connect(int i, bool datagrams)
{
	union wire_sockaddr a;

	if (rdma_create_id(channel, &ids[i], NULL,
			   datagrams ? RDMA_PS_UDP : RDMA_PS_TCP)) {
		ids[i] = NULL;
		return;
	}
	address(&a, host.there);
	rdma_resolve_addr(ids[i], NULL, &a.sa, 1000);
}

void rdmacm_connect(const struct record *r)
{
	const int i = r->key % IDS;
	struct rdma_conn_param p = parameters();

	events();
	if (!ids[i]) {
		id_connect(i, r->op & 1);
		events();
		return;
	}
	if (!ids[i]->verbs) { /* librdmacm would use it unchecked */
		id_end(i);
		return;
	}
	switch (r->op % 6) {
	case 0:
	case 1:
		rdma_accept(ids[i], &p);
		break;
	case 2:
		rdma_reject(ids[i], "no", r->length % 3);
		break;
	case 3:
		rdma_disconnect(ids[i]);
		break;
	case 4:
		id_end(i);
		break;
	case 5:
		rdma_notify(ids[i], IBV_EVENT_COMM_EST);
	}
	events();
}

void rdmacm_begin(void)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP,
						       RDMA_PS_UDP };
	union wire_sockaddr a;
	int i;

	channel = rdma_create_event_channel();
	must(channel && !fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	address(&a, host.here);
	for (i = 0; i < 2; i++) {
		must(!rdma_create_id(channel, &listener[i], NULL, spaces[i]));
		must(!rdma_bind_addr(listener[i], &a.sa));
		must(!rdma_listen(listener[i], BACKLOG));
	}
}

void rdmacm_end(void)
{
	int i;

	events();
	for (i = 0; i < IDS; i++)
		id_end(i);
	must(!rdma_destroy_id(listener[0]));
	must(!rdma_destroy_id(listener[1]));
	rdma_destroy_event_channel(channel);
}

/* ------------------------------------------------------- messages */

/* The last messages from the host: communication ID and transaction ID. */
static struct received {
	uint32_t id;
	uint64_t tid;
} received[RECEIVED];
static unsigned int said;

/*
 * The fields of a message for the communication ID (SIDR: request ID) of its
 * sender and of its receiver; 0: the message has no such field.
 */
static const struct {
	enum mad_field own, other;
} names[] = {
	[MAD_REQ] = { MAD_REQ_local_comm_id, 0 },
	[MAD_MRA] = { MAD_MRA_local_comm_id, MAD_MRA_remote_comm_id },
	[MAD_REJ] = { MAD_REJ_local_comm_id, MAD_REJ_remote_comm_id },
	[MAD_REP] = { MAD_REP_local_comm_id, MAD_REP_remote_comm_id },
	[MAD_RTU] = { MAD_RTU_local_comm_id, MAD_RTU_remote_comm_id },
	[MAD_DREQ] = { MAD_DREQ_local_comm_id, MAD_DREQ_remote_comm_id },
	[MAD_DREP] = { MAD_DREP_local_comm_id, MAD_DREP_remote_comm_id },
	[MAD_SIDR_REQ] = { MAD_SIDR_REQ_request_id, 0 },
	[MAD_SIDR_REP] = { 0, MAD_SIDR_REP_request_id },
};

void rdmacm_receive(const struct wire_packet *p)
{
	enum mad_message m = mad_check(p->payload, p->length);

	must(m != MAD_HEADER); /* the host sends valid CM messages */
	if (names[m].own)
		received[said++ % RECEIVED] = (struct received){
			.id = (uint32_t)mad_get(p->payload, names[m].own),
			.tid = mad_get(p->payload, MAD_HEADER_tid),
		};
}

static void put_header(uint8_t *mad, enum mad_field data, const struct record *r)
{
	struct mad_ip_header h = {
		.ip_version = host.ipv6 ? 0x60 : 0x40,
		.port = { 0x50, 1 },
	};

	memcpy(h.src, host.there, 16);
	memcpy(h.dst, host.here, 16);
	if (!host.ipv6)
		h.src[10] = h.src[11] = h.dst[10] = h.dst[11] = 0;
	if (r->flags & FLAG_BIG)
		h.src[15]++;
	mad_set_bytes(mad, data, 0, &h, sizeof(h));
}

static void put_req(uint8_t *mad, const struct record *r, uint64_t service)
{
	mad_set(mad, MAD_REQ_service_id, service);
	mad_set(mad, MAD_REQ_local_qpn, PEER_QPN(QP_RC));
	mad_set(mad, MAD_REQ_starting_psn, FIRST_PSN);
	mad_set(mad, MAD_REQ_responder_resources, 1);
	mad_set(mad, MAD_REQ_initiator_depth, 1);
	mad_set(mad, MAD_REQ_remote_cm_response_timeout, 20);
	mad_set(mad, MAD_REQ_local_cm_response_timeout, 20);
	mad_set(mad, MAD_REQ_pkey, 0xffff);
	mad_set(mad, MAD_REQ_path_mtu, 1);
	mad_set(mad, MAD_REQ_max_cm_retries, 15);
	mad_set(mad, MAD_REQ_local_ack_timeout, 14);
	mad_set_bytes(mad, MAD_REQ_local_gid, 0, host.there, 16);
	mad_set_bytes(mad, MAD_REQ_remote_gid, 0, host.here, 16);
	put_header(mad, MAD_REQ_private_data, r);
}

static void put_fields(uint8_t *mad, enum mad_message m, const struct record *r)
{
	const uint64_t service = ((m == MAD_REQ ? 0x0106ull : 0x0111ull) << 16) +
				 PORT + (r->flags & FLAG_FAR ? 1 : 0);

	switch (m) {
	case MAD_REQ:
		put_req(mad, r, service);
		break;
	case MAD_SIDR_REQ:
		mad_set(mad, MAD_SIDR_REQ_pkey, 0xffff);
		mad_set(mad, MAD_SIDR_REQ_service_id, service);
		put_header(mad, MAD_SIDR_REQ_private_data, r);
		break;
	case MAD_REP:
		mad_set(mad, MAD_REP_local_qpn, PEER_QPN(QP_RC));
		mad_set(mad, MAD_REP_starting_psn, FIRST_PSN);
		break;
	case MAD_DREQ:
		mad_set(mad, MAD_DREQ_remote_qpn,
			host.qp[QP_RC].qp->qp_num);
		break;
	case MAD_SIDR_REP:
		mad_set(mad, MAD_SIDR_REP_qpn, 5);
		break;
	case MAD_REJ:
		mad_set(mad, MAD_REJ_reason, r->length % 34);
		break;
	default:
		break;
	}
}

void rdmacm_message(const struct record *r)
{
	const enum mad_message m = MAD_REQ + r->op % 9;
	const struct received *h = &received[r->key / 8 % RECEIVED];
	uint8_t mad[MAD_BYTES];
	uint32_t field;

	mad_begin(mad, m, r->key & 0x80 ? 0x77 : h->tid);
	if (names[m].own)
		mad_set(mad, names[m].own, 0x100u + r->key % 8);
	if (names[m].other)
		mad_set(mad, names[m].other,
			h->id + (r->flags & FLAG_RAW ? r->length : 0));
	put_fields(mad, m, r);
	field = (uint8_t)r->offset + (r->flags & FLAG_SOLICITED ? 64u : 0);
	if (r->flags & FLAG_ODD && field < MAD_FIELDS &&
	    mad_fields[field].bits <= 64)
		mad_set(mad, field,
			r->length * (r->flags & FLAG_ACK ? 0x1010101ull : 1));
	peer_mad(r, mad, MAD_BYTES);
	events();
}
