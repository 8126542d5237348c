// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages received from other hosts (IB specification, 12.6 to 12.11).
 * wire.h describes callers and locking.
 *
 * Messages are not trusted.  A connection is identified by our communication
 * ID, which the message repeats (a repeated request: by the peer's), and by
 * the peer's GID; messages from another GID do not affect it.  An unknown
 * sender can create ids only by requests to a listener, and no more than its
 * backlog.  All its other messages are ignored or answered by one datagram of
 * the same length, so there is no amplification.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/clock.h"
#include "wire.h"

#define EXTENDED 3 /* transport service: XRC */

/* A received message. */
struct cm_message {
	const struct wire_path *path; /* sgid: the sender */
	const uint8_t *mad;
};

static uint32_t get(const struct cm_message *l, enum mad_field f)
{
	return (uint32_t)mad_get(l->mad, f);
}

static uint64_t cm_message_tid(const struct cm_message *l)
{
	return mad_get(l->mad, MAD_HEADER_tid);
}

/* Return whether the message is from the host of @id's peer. */
static bool is_from(const struct cm_message *l, const struct cm_id *id)
{
	return cm_is_remote(id) && !memcmp(id->dgid, l->path->sgid, 16);
}

/*
 * Return the id with our communication ID @own whose peer may have sent the
 * message, or NULL.  @remote: the peer's communication ID; 0: not in the
 * message.
 */
static struct cm_id *own_id(struct cm *cm, const struct cm_message *l,
			    uint32_t own, uint32_t remote)
{
	struct cm_id *id = cm_id_of_comm_id(cm, own);

	if (!id || !is_from(l, id))
		return NULL;
	return !remote || !id->remote_comm_id || id->remote_comm_id == remote ?
		       id :
		       NULL;
}

static bool is_passive(const struct cm_id *id)
{
	return id->cm == CM_REQ_RCVD || id->cm == CM_REP_SENT ||
	       id->cm == CM_SIDR_RCVD;
}

/*
 * Return the passive id, not yet established, whose request had communication
 * ID @comm_id, or NULL.
 */
static struct cm_id *
passive_id_of_req(struct cm *cm, const struct cm_message *l, uint32_t comm_id)
{
	struct cm_id *id;

	cm_for_each_id(cm, id)
		if (id->remote_comm_id == comm_id && is_from(l, id) &&
		    is_passive(id))
			return id;
	return NULL;
}

/*
 * Return the id that a previous copy of this REQ created, or NULL.  A REQ for
 * another connection has another QPN or starting PSN.
 */
static struct cm_id *req_id(struct cm *cm, const struct cm_message *l)
{
	struct cm_id *id;

	cm_for_each_id(cm, id)
		if (id->remote_comm_id == get(l, MAD_REQ_local_comm_id) &&
		    is_from(l, id) && id->cm != CM_IDLE &&
		    id->remote_qpn == get(l, MAD_REQ_local_qpn) &&
		    id->remote_psn == get(l, MAD_REQ_starting_psn))
			return id;
	return NULL;
}

/*
 * Return whether @id is in a state from CM_REQ_RCVD to CM_TIMEWAIT: it has a
 * connection, or one is being established or ended.
 */
static bool is_connected(const struct cm_id *id)
{
	return id->cm != CM_IDLE && id->cm != CM_REQ_SENT &&
	       id->cm != CM_SIDR_SENT && id->cm != CM_SIDR_RCVD;
}

/*
 * Detect a stale connection (12.9.8.3.1).  The peer connects QP @qpn, so an
 * older connection of that QP is one that the peer does not know any more.
 * If that is established, it is disconnected.  Return true if there is one
 * other than that of @id, or a TIMEWAIT record of one, since packets of it
 * may still arrive.
 */
static bool is_stale(struct cm *cm, const struct cm_message *l,
		     const struct cm_id *id, uint32_t qpn)
{
	struct cm_id *other;

	cm_for_each_id(cm, other)
		if (other != id && other->remote_qpn == qpn &&
		    is_from(l, other) && other->qp_type != CM_QPT_UD &&
		    is_connected(other)) {
			if (other->cm == CM_ESTABLISHED)
				cm_disconnect(cm, other);
			return true;
		}
	return cm_ended_has(cm, l->path->sgid, qpn);
}

/*
 * Return a temporary id, not in the table, to answer a message for which no
 * id exists.
 */
static struct cm_id temporary_id(const struct cm_message *l,
				 uint32_t remote_comm_id)
{
	struct cm_id id = {
		.cm = CM_REQ_RCVD,
		.flags = CM_F_WIRE,
		.path_tos = l->path->traffic_class & 0xfc, /* without ECN */
		.remote_comm_id = remote_comm_id,
		.remote_tid = cm_message_tid(l),
	};

	memcpy(id.sgid, l->path->dgid, 16);
	memcpy(id.dgid, l->path->sgid, 16);
	return id;
}

/* ------------------------------------------------------------ requests */

/*
 * Convert 16 bytes of the IP CM header to an IP address.  Return false if it
 * is a wildcard or loopback address.
 */
static bool addr_from_ip(union cm_addr *a, const uint8_t raw[16], bool v4)
{
	memset(a, 0, sizeof(*a));
	a->sa.sa_family = v4 ? AF_INET : AF_INET6;
	if (v4)
		memcpy(&a->in.sin_addr, raw + 12, 4);
	else
		memcpy(&a->in6.sin6_addr, raw, 16);
	return !cm_addr_zero(a) && !cm_addr_loopback(a);
}

static void addr_from_gid(union cm_addr *a, const uint8_t gid[16], uint64_t sid)
{
	memset(a, 0, sizeof(*a));
	a->ib.sib_family = CM_AF_IB;
	memcpy(a->ib.sib_addr, gid, 16);
	a->ib.sib_sid = htobe64(sid);
	a->ib.sib_sid_mask = ~0ull;
}

/*
 * Set source and destination address of the client.  If the private data has
 * an IP CM header (A11) that matches the GIDs of the packet, use its
 * addresses and return its length in bytes.  Otherwise use the GIDs (AF_IB)
 * and return 0.
 */
static size_t request_set_addrs(struct cm_id *c, const struct cm_message *l,
				uint64_t sid)
{
	struct mad_ip_header h;
	uint8_t raw[2][16];
	bool v4;

	if (sid <= UINT32_MAX && mad_get_ip_header(l->mad, &h)) {
		v4 = h.ip_version >> 4 == 4;
		if (addr_from_ip(&c->src, h.src, v4) &&
		    addr_from_ip(&c->dst, h.dst, v4)) {
			cm_addr_raw(&c->src, raw[0]);
			cm_addr_raw(&c->dst, raw[1]);
			cm_addr_set_port(&c->src, (uint16_t)(h.port[0] << 8 |
							     h.port[1]));
			cm_addr_set_port(&c->dst, (uint16_t)sid);
			c->ps = (uint16_t)(sid >> 16);
			if (!memcmp(raw[0], l->path->sgid, 16) &&
			    !memcmp(raw[1], l->path->dgid, 16))
				return sizeof(h);
		}
	}
	addr_from_gid(&c->src, l->path->sgid, 0);
	addr_from_gid(&c->dst, l->path->dgid, sid);
	return 0;
}

static void request_set_private(struct cm_id *c, const struct cm_message *l,
				enum mad_field f, size_t skip)
{
	size_t len;
	const uint8_t *data = mad_bytes(l->mad, f, &len);

	c->private_len = (uint8_t)cm_min(len - skip, sizeof(c->private_data));
	memcpy(c->private_data, data + skip, c->private_len);
}

static uint8_t req_qp_type(const struct cm_message *l)
{
	switch (get(l, MAD_REQ_transport_service)) {
	case EXTENDED:
		return CM_QPT_XRC_SEND;
	case 1:
		return CM_QPT_UC;
	default:
		return CM_QPT_RC;
	}
}

/*
 * Return the peer's response timeout in the encoding of cm_id.cm_timeout,
 * 4.096 us << (8 + value).  It is at least 1 ms, since the kernel's timers
 * are no finer, and at most 34 s.
 */
static uint8_t req_cm_timeout(const struct cm_message *l)
{
	const uint32_t timeout = get(l, MAD_REQ_local_cm_response_timeout);

	return timeout < 8 ? 0 : (uint8_t)cm_min(timeout - 8, 15);
}

/* Return a temporary id with the contents of a REQ. */
static struct cm_id client_of_req(const struct cm_message *l)
{
	const uint32_t life = get(l, MAD_REQ_local_ack_timeout);
	struct cm_id c = {
		.flags = CM_F_WIRE | (get(l, MAD_REQ_srq) ? CM_F_SRQ : 0),
		.qp_type = req_qp_type(l),
		.qpn = get(l, MAD_REQ_local_qpn),
		.psn = get(l, MAD_REQ_starting_psn),
		.responder_resources =
			(uint8_t)get(l, MAD_REQ_responder_resources),
		.initiator_depth = (uint8_t)get(l, MAD_REQ_initiator_depth),
		.flow_control =
			(uint8_t)get(l, MAD_REQ_end_to_end_flow_control),
		.retry_count = (uint8_t)get(l, MAD_REQ_retry_count),
		.rnr_retry_count = (uint8_t)get(l, MAD_REQ_rnr_retry_count),
		.path_mtu = (uint8_t)get(l, MAD_REQ_path_mtu),
		.path_tos = (uint8_t)get(l, MAD_REQ_traffic_class),
		.path_flow = get(l, MAD_REQ_flow_label),
		.path_life = (uint8_t)(life ? life - 1 : 0),
		.ece = { .vendor_id = get(l, MAD_REQ_vendor_id),
			 .attr_mod = get(l, MAD_HEADER_modifier) },
		.remote_comm_id = get(l, MAD_REQ_local_comm_id),
		.remote_tid = cm_message_tid(l),
		.cm_retries = get(l, MAD_REQ_max_cm_retries) & 15,
		.cm_timeout = req_cm_timeout(l) & 15,
	};

	memcpy(c.sgid, l->path->sgid, 16);
	memcpy(c.dgid, l->path->dgid, 16);
	request_set_private(
		&c, l, MAD_REQ_private_data,
		request_set_addrs(&c, l, mad_get(l->mad, MAD_REQ_service_id)));
	return c;
}

static void refuse(struct cm *cm, const struct cm_message *l, uint32_t comm_id,
		   unsigned int reason)
{
	const struct cm_id id = temporary_id(l, comm_id);

	cm_sent_rej(cm, &id, reason, NULL, 0);
}

/* Handle a duplicate REQ: its response was lost or is delayed. */
static void got_req_duplicate(struct cm *cm, const struct cm_message *l,
			      struct cm_id *id)
{
	switch (id->cm) {
	case CM_REQ_RCVD: /* not accepted or rejected yet */
		cm_sent_mra(cm, id, MAD_ABOUT_REQ);
		break;
	case CM_REP_SENT:
		cm_wire_repeat_reply(cm, id);
		break;
	case CM_TIMEWAIT:
		refuse(cm, l, id->remote_comm_id, CM_REJ_STALE);
		break;
	default:
		break;
	}
}

static void got_req(struct cm *cm, const struct cm_message *l)
{
	const uint32_t comm_id = get(l, MAD_REQ_local_comm_id);
	struct cm_id client, *id = req_id(cm, l);
	int err;

	if (id) {
		got_req_duplicate(cm, l, id);
		return;
	}
	client = client_of_req(l);
	if (is_stale(cm, l, NULL, client.qpn)) {
		refuse(cm, l, comm_id, CM_REJ_STALE);
		return;
	}
	/* -ENOMEM: a retransmission may succeed */
	if (cm_device_is_down(cm, &client) ||
	    cm_got_request(cm, &client, &err) || err == -ENOMEM)
		return;
	refuse(cm, l, comm_id,
	       err == -ENOENT ? CM_REJ_INVALID_SERVICE : CM_REJ_CONSUMER);
}

/*
 * Repeat the SIDR_REP if this request was answered before.  Return whether it
 * was.
 */
static bool repeat_sidr_rep(struct cm *cm, const struct cm_message *l,
			    uint32_t comm_id)
{
	const struct cm_id *id;

	cm_for_each_id(cm, id)
		if (id->flags & CM_F_REPLIED && is_from(l, id) &&
		    id->remote_comm_id == comm_id &&
		    id->remote_tid == cm_message_tid(l)) {
			cm_wire_repeat_reply(cm, id);
			return true;
		}
	return false;
}

static void got_sidr_req(struct cm *cm, const struct cm_message *l)
{
	const uint32_t comm_id = get(l, MAD_SIDR_REQ_request_id);
	struct cm_id client = temporary_id(l, comm_id);
	int err;

	if (cm_device_is_down(cm, &client) ||
	    passive_id_of_req(cm, l, comm_id) ||
	    repeat_sidr_rep(cm, l, comm_id))
		return;
	client.qp_type = CM_QPT_UD;
	/* the GIDs as the client sees them */
	memcpy(client.sgid, l->path->sgid, 16);
	memcpy(client.dgid, l->path->dgid, 16);
	request_set_private(
		&client, l, MAD_SIDR_REQ_private_data,
		request_set_addrs(&client, l,
				  mad_get(l->mad, MAD_SIDR_REQ_service_id)));
	if (cm_got_request(cm, &client, &err))
		return;
	client = temporary_id(l, comm_id);
	client.src.sa.sa_family = CM_AF_IB; /* carries the service ID */
	client.src.ib.sib_sid =
		htobe64(mad_get(l->mad, MAD_SIDR_REQ_service_id));
	cm_sent_sidr_rep(cm, &client,
			 err == -ENOENT ? CM_SIDR_UNSUPPORTED : CM_SIDR_REJECT,
			 NULL, 0);
}

/* ----------------------------------------------------------- responses */

static void take_private(const struct cm_message *l, enum mad_field f,
			 uint8_t *to, uint8_t *len, size_t room)
{
	size_t n;
	const uint8_t *data = mad_bytes(l->mad, f, &n);

	*len = (uint8_t)cm_min(n, room);
	memcpy(to, data, *len);
}

static void refuse_rep(struct cm *cm, const struct cm_message *l,
		       unsigned int reason)
{
	const struct cm_id id = temporary_id(l, get(l, MAD_REP_local_comm_id));

	cm_sent_rej_rep(cm, &id, get(l, MAD_REP_remote_comm_id), reason);
}

/*
 * Handle a REP that no id in CM_REQ_SENT expects.  @id: the id that it is
 * addressed to, or NULL.
 */
static void got_rep_unexpected(struct cm *cm, const struct cm_message *l,
			       struct cm_id *id)
{
	if (id && id->cm == CM_ESTABLISHED) {
		cm_sent_rtu(cm, id); /* the RTU was lost */
	} else if (id && id->cm == CM_REP_RCVD) {
		cm_sent_mra(cm, id, MAD_ABOUT_REP);
		id->flags |= CM_F_MRA;
	} else if (id ? id->cm == CM_IDLE :
			!cm_id_of_comm_id(cm, get(l, MAD_REP_remote_comm_id))) {
		refuse_rep(cm, l, CM_REJ_INVALID_COMM_ID);
	}
}

static void got_rep(struct cm *cm, const struct cm_message *l)
{
	struct cm_id *id = own_id(cm, l, get(l, MAD_REP_remote_comm_id),
				  get(l, MAD_REP_local_comm_id));
	struct cm_id server = { .psn = get(l, MAD_REP_starting_psn) };
	struct rdma_ucm_conn_param p = {
		.responder_resources =
			(uint8_t)get(l, MAD_REP_responder_resources),
		.initiator_depth = (uint8_t)get(l, MAD_REP_initiator_depth),
		.flow_control =
			(uint8_t)get(l, MAD_REP_end_to_end_flow_control),
		.rnr_retry_count = (uint8_t)get(l, MAD_REP_rnr_retry_count),
		.srq = (uint8_t)get(l, MAD_REP_srq),
	};
	const struct rdma_ucm_ece ece = {
		.vendor_id = get(l, MAD_REP_vendor_id_high) << 16 |
			     get(l, MAD_REP_vendor_id_middle) << 8 |
			     get(l, MAD_REP_vendor_id_low),
		.attr_mod = get(l, MAD_HEADER_modifier),
	};

	if (!id || id->cm != CM_REQ_SENT) {
		got_rep_unexpected(cm, l, id);
		return;
	}
	server.qpn = get(l, id->qp_type == CM_QPT_XRC_SEND ?
				    MAD_REP_local_eecn :
				    MAD_REP_local_qpn);
	/* an XRC target QP may serve several initiators */
	if (id->qp_type != CM_QPT_XRC_SEND && is_stale(cm, l, id, server.qpn)) {
		refuse_rep(cm, l, CM_REJ_STALE);
		return;
	}
	take_private(l, MAD_REP_private_data, p.private_data,
		     &p.private_data_len, CM_REP_PRIVATE);
	id->remote_comm_id = get(l, MAD_REP_local_comm_id);
	cm_got_rep(cm, id, &server, &p, &ece);
}

static void got_rtu(struct cm *cm, const struct cm_message *l)
{
	struct cm_id *id = own_id(cm, l, get(l, MAD_RTU_remote_comm_id),
				  get(l, MAD_RTU_local_comm_id));

	if (!id || id->cm != CM_REP_SENT)
		return;
	id->cm = CM_ESTABLISHED;
	id->deadline = 0;
	cm_event_post(cm, id, CM_EV_ESTABLISHED, 0);
}

/*
 * A client that gives up before it got a REP does not know our communication
 * ID; the id is then found by the client's.
 */
static void got_rej(struct cm *cm, const struct cm_message *l)
{
	const uint32_t own = get(l, MAD_REJ_remote_comm_id);
	const uint32_t remote = get(l, MAD_REJ_local_comm_id);
	struct cm_id *id = own ? own_id(cm, l, own, remote) :
				 passive_id_of_req(cm, l, remote);
	uint8_t data[CM_REJ_PRIVATE], len;

	if (!id || id->cm == CM_SIDR_SENT || id->cm == CM_SIDR_RCVD)
		return;
	take_private(l, MAD_REJ_private_data, data, &len, sizeof(data));
	cm_got_rej(cm, id, (int)get(l, MAD_REJ_reason), data, len);
}

/* MRA: the peer needs more time; extend the timer. */
static void got_mra(struct cm *cm, const struct cm_message *l)
{
	struct cm_id *id = own_id(cm, l, get(l, MAD_MRA_remote_comm_id),
				  get(l, MAD_MRA_local_comm_id));
	const uint64_t ns = 4096ull << cm_min(get(l, MAD_MRA_service_timeout),
					      CM_WIRE_LONGEST);
	const uint32_t message = get(l, MAD_MRA_message);

	if (id && id->deadline &&
	    ((id->cm == CM_REQ_SENT && message == MAD_ABOUT_REQ) ||
	     (id->cm == CM_REP_SENT && message == MAD_ABOUT_REP)))
		id->deadline = clock_now() + ns;
}

static void got_dreq(struct cm *cm, const struct cm_message *l)
{
	const uint32_t own = get(l, MAD_DREQ_remote_comm_id);
	const uint32_t remote = get(l, MAD_DREQ_local_comm_id);
	struct cm_id none, *id = own_id(cm, l, own, remote);

	if (!id || id->cm == CM_IDLE) { /* DREP may have been lost */
		none = temporary_id(l, remote);
		cm_ended_answered(cm, l->path->sgid, own);
		cm_sent_drep_as(cm, &none, own);
		return;
	}
	if (id->qpn != get(l, MAD_DREQ_remote_qpn))
		return;
	id->remote_tid = cm_message_tid(l);
	switch (id->cm) {
	case CM_REP_SENT:
	case CM_ESTABLISHED:
		cm_got_dreq(cm, id);
		break;
	case CM_DREQ_SENT: /* both ends disconnect */
		cm_sent_drep(cm, id);
		cm_got_drep(cm, id);
		break;
	case CM_TIMEWAIT:
		cm_sent_drep(cm, id);
		break;
	default:
		break;
	}
}

static void got_drep(struct cm *cm, const struct cm_message *l)
{
	const uint32_t own = get(l, MAD_DREP_remote_comm_id);
	struct cm_id *id = own_id(cm, l, own, get(l, MAD_DREP_local_comm_id));

	if (id)
		cm_got_drep(cm, id);
	else
		cm_ended_answered(cm, l->path->sgid, own);
}

static void got_sidr_rep(struct cm *cm, const struct cm_message *l)
{
	struct cm_id *id = own_id(cm, l, get(l, MAD_SIDR_REP_request_id), 0);
	const struct cm_id server = { .qpn = get(l, MAD_SIDR_REP_qpn),
				      .qkey = get(l, MAD_SIDR_REP_qkey) };
	const uint32_t status = get(l, MAD_SIDR_REP_status);
	uint8_t data[CM_SIDR_REP_PRIVATE], len;

	if (!id || id->cm != CM_SIDR_SENT)
		return;
	take_private(l, MAD_SIDR_REP_private_data, data, &len, sizeof(data));
	if (status)
		cm_got_sidr_reject(cm, id, (int)status, data, len);
	else
		cm_got_sidr_reply(cm, id, &server, data, len);
}

/* -------------------------------------------------------- entry points */

void cm_wire_take(struct cm *cm, const struct wire_path *path,
		  const uint8_t *mad, size_t n)
{
	static void (*const got[])(struct cm * cm,
				   const struct cm_message *l) = {
		[MAD_REQ] = got_req,	       [MAD_MRA] = got_mra,
		[MAD_REJ] = got_rej,	       [MAD_REP] = got_rep,
		[MAD_RTU] = got_rtu,	       [MAD_DREQ] = got_dreq,
		[MAD_DREP] = got_drep,	       [MAD_SIDR_REQ] = got_sidr_req,
		[MAD_SIDR_REP] = got_sidr_rep,
	};
	const struct cm_message l = { path, mad };
	const enum mad_message m = mad_check(mad, n);

	if (m != MAD_HEADER)
		got[m](cm, &l);
}

/*
 * The thread that reads the socket serves the whole fabric and must not wait
 * long for a process that is stopped while it holds the lock.  Messages are
 * dropped meanwhile; the peer retransmits them.
 */
#define LOCK_TIMEOUT_NS 100000000ull /* longest wait for the lock */
/* after a wait that failed, do not wait at all for this time */
#define NO_WAIT_NS 1000000000ull

static int lock_soon(struct cm *cm)
{
	static uint64_t in_vain;
	const uint64_t now = clock_now();
	int ret;

	ret = cm_lock_within(cm, now < in_vain ? 0 : LOCK_TIMEOUT_NS);
	if (ret && now >= in_vain)
		in_vain = clock_now() + NO_WAIT_NS;
	return ret;
}

void cm_wire_receive(struct urxe_fabric *f, const struct wire_path *path,
		     const uint8_t *mad, size_t n)
{
	static struct urxe_fabric *mapped;
	static struct cm_table *table;
	struct cm cm = { .f = f };

	if (mapped != f && cm_map(f, &table))
		return;
	mapped = f;
	cm.t = table;
	if (lock_soon(&cm))
		return;
	cm_wire_take(&cm, path, mad, n);
	cm_settle(&cm);
	cm_unlock(&cm);
}
