// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages of the communication manager (IB specification, 12.6 to 12.11) as
 * MADs of 256 bytes.  The other files of this directory call these
 * functions at the time at which they send a message, with the tables locked.
 *
 * A MAD is passed to cm.sent (trace), if that is set.  Only MADs to other
 * hosts are transmitted (wire.h).  Within a fabric a message takes effect by
 * function calls, and no MAD is built unless cm.sent is set.
 *
 * Transaction IDs: a request has its attribute ID and the requester's
 * communication ID, which is unique, as transaction ID.  A response repeats
 * the transaction ID of the request.
 */
#include <endian.h>
#include <string.h>

#include "cm.h"
#include "wire.h"

#define NO_LID 0xffff
#define IP_VERSION(family) ((family) == AF_INET6 ? 6 << 4 : 4 << 4)

uint32_t cm_comm_id(struct cm *cm, const struct cm_id *id)
{
	static_assert(CM_MAX_ID < 1 << 15, "a ref has 15 bits");
	return (id->gen << 15 | cm_id_ref(cm, id)) ^ cm->t->salt;
}

struct cm_id *cm_id_of_comm_id(struct cm *cm, uint32_t comm_id)
{
	struct cm_id *id =
		cm_id_at(cm, (comm_id ^ cm->t->salt) & ((1u << 15) - 1));

	return id && cm_comm_id(cm, id) == comm_id ? id : NULL;
}

static uint64_t tid(enum mad_message asking, uint32_t comm_id)
{
	return (uint64_t)asking << 32 | comm_id;
}

/* Return the transaction ID of a response from @id. */
static uint64_t response_tid(enum mad_message asking, const struct cm_id *id)
{
	return cm_is_remote(id) ? id->remote_tid :
				  tid(asking, id->remote_comm_id);
}

/* Return whether a MAD from @id has to be built. */
static bool needs_mad(const struct cm *cm, const struct cm_id *id)
{
	return cm->sent || cm_is_remote(id);
}

static void send_mad(struct cm *cm, const struct cm_id *id,
		     const uint8_t mad[MAD_BYTES])
{
	if (cm->sent)
		cm->sent(cm, id, mad);
	if (!cm_is_remote(id))
		return;
	if (cm->transmit)
		cm->transmit(id, mad);
	else
		cm_wire_send(cm->f, id, mad);
}

/*
 * Store the IP CM private data header (IB specification, A11): IP version,
 * source port and addresses.  Return its length in bytes; 0 for AF_IB, which
 * has none.
 */
static size_t put_ip_header(uint8_t *mad, enum mad_field private_data,
			    const struct cm_id *id)
{
	const uint16_t port = cm_addr_port(&id->src);
	struct mad_ip_header h = {
		.ip_version = IP_VERSION(id->src.sa.sa_family),
		.port = { (uint8_t)(port >> 8), (uint8_t)port },
	};
	const bool v6 = id->src.sa.sa_family == AF_INET6;

	if (id->src.sa.sa_family == CM_AF_IB)
		return 0;
	cm_addr_raw(&id->src, h.src);
	cm_addr_raw(&id->dst, h.dst);
	if (!v6) { /* without the prefix ::ffff:0:0/96 */
		memset(h.src, 0, 12);
		memset(h.dst, 0, 12);
	}
	mad_set_bytes(mad, private_data, 0, &h, sizeof(h));
	return sizeof(h);
}

/* Store that header and the private data of the request. */
static void put_private(uint8_t *mad, enum mad_field private_data,
			const struct cm_id *id)
{
	const size_t at = put_ip_header(mad, private_data, id);

	mad_set_bytes(mad, private_data, at, id->private_data,
		      cm_min(id->private_len, sizeof(id->private_data)));
}

static uint64_t ca_guid(const struct cm *cm, const struct cm_id *id)
{
	return cm_hca(cm, id)->node_guid;
}

static void req_put_qp(uint8_t *mad, const struct cm_id *id)
{
	const bool xrc = id->qp_type == CM_QPT_XRC_SEND;

	mad_set(mad, MAD_REQ_local_qpn, id->qpn);
	mad_set(mad, MAD_REQ_initiator_depth, id->initiator_depth);
	mad_set(mad, MAD_REQ_transport_service,
		xrc ? 3 : id->qp_type == CM_QPT_UC);
	mad_set(mad, MAD_REQ_extended_transport, xrc);
	mad_set(mad, MAD_REQ_end_to_end_flow_control, id->flow_control);
	mad_set(mad, MAD_REQ_starting_psn, id->psn);
	if (xrc) /* the remaining fields describe a responder */
		return;
	mad_set(mad, MAD_REQ_responder_resources, id->responder_resources);
	mad_set(mad, MAD_REQ_retry_count, id->retry_count);
	mad_set(mad, MAD_REQ_rnr_retry_count, id->rnr_retry_count);
	mad_set(mad, MAD_REQ_srq, !!(id->flags & CM_F_SRQ));
}

static void req_put_path(const struct cm *cm, uint8_t *mad,
			 const struct cm_id *id)
{
	const bool infiniband = cm_is_infiniband(cm, id);
	uint16_t slid, dlid;

	cm_path_lids(cm, id, &slid, &dlid);
	mad_set(mad, MAD_REQ_pkey, cm_pkey(cm, id));
	mad_set(mad, MAD_REQ_path_mtu, cm_path_mtu(id));
	mad_set(mad, MAD_REQ_local_lid, infiniband ? slid : NO_LID);
	mad_set(mad, MAD_REQ_remote_lid, infiniband ? dlid : NO_LID);
	mad_set(mad, MAD_REQ_subnet_local, infiniband);
	mad_set_bytes(mad, MAD_REQ_local_gid, 0, id->sgid, 16);
	mad_set_bytes(mad, MAD_REQ_remote_gid, 0, id->dgid, 16);
	mad_set(mad, MAD_REQ_flow_label, id->path_flow);
	mad_set(mad, MAD_REQ_packet_rate, cm_path_rate(cm, id));
	mad_set(mad, MAD_REQ_traffic_class, id->path_tos);
	mad_set(mad, MAD_REQ_hop_limit, infiniband ? 0 : CM_HOP_LIMIT);
	mad_set(mad, MAD_REQ_local_ack_timeout, id->path_life + 1u);
}

static void req_sent(struct cm *cm, const struct cm_id *id)
{
	const uint32_t own = cm_comm_id(cm, id);
	uint8_t mad[MAD_BYTES];

	mad_begin(mad, MAD_REQ, tid(MAD_REQ, own));
	mad_set(mad, MAD_HEADER_modifier, id->ece.attr_mod);
	mad_set(mad, MAD_REQ_local_comm_id, own);
	mad_set(mad, MAD_REQ_vendor_id, id->ece.vendor_id);
	mad_set(mad, MAD_REQ_service_id, cm_service_id(id, &id->dst));
	mad_set(mad, MAD_REQ_local_ca_guid, ca_guid(cm, id));
	mad_set(mad, MAD_REQ_remote_cm_response_timeout, CM_WIRE_TIMEOUT);
	mad_set(mad, MAD_REQ_local_cm_response_timeout, CM_WIRE_TIMEOUT);
	mad_set(mad, MAD_REQ_max_cm_retries, CM_WIRE_RETRIES);
	req_put_qp(mad, id);
	req_put_path(cm, mad, id);
	put_private(mad, MAD_REQ_private_data, id);
	send_mad(cm, id, mad);
}

static void sidr_req_sent(struct cm *cm, const struct cm_id *id)
{
	const uint32_t own = cm_comm_id(cm, id);
	uint8_t mad[MAD_BYTES];

	mad_begin(mad, MAD_SIDR_REQ, tid(MAD_SIDR_REQ, own));
	mad_set(mad, MAD_SIDR_REQ_request_id, own);
	mad_set(mad, MAD_SIDR_REQ_pkey, cm_pkey(cm, id));
	mad_set(mad, MAD_SIDR_REQ_service_id, cm_service_id(id, &id->dst));
	put_private(mad, MAD_SIDR_REQ_private_data, id);
	send_mad(cm, id, mad);
}

void cm_sent_request(struct cm *cm, const struct cm_id *id)
{
	if (!needs_mad(cm, id))
		return;
	if (id->qp_type == CM_QPT_UD)
		sidr_req_sent(cm, id);
	else
		req_sent(cm, id);
}

void cm_sent_rep(struct cm *cm, const struct cm_id *id,
		 const struct rdma_ucm_conn_param *p,
		 const struct rdma_ucm_ece *ece)
{
	const bool xrc = id->qp_type == CM_QPT_XRC_RECV;
	uint8_t mad[MAD_BYTES];

	if (!needs_mad(cm, id))
		return;
	mad_begin(mad, MAD_REP, response_tid(MAD_REQ, id));
	mad_set(mad, MAD_HEADER_modifier, ece->attr_mod);
	mad_set(mad, MAD_REP_local_comm_id, cm_comm_id(cm, id));
	mad_set(mad, MAD_REP_remote_comm_id, id->remote_comm_id);
	mad_set(mad, xrc ? MAD_REP_local_eecn : MAD_REP_local_qpn, id->qpn);
	mad_set(mad, MAD_REP_vendor_id_high, ece->vendor_id >> 16);
	mad_set(mad, MAD_REP_vendor_id_middle, ece->vendor_id >> 8);
	mad_set(mad, MAD_REP_vendor_id_low, ece->vendor_id);
	mad_set(mad, MAD_REP_starting_psn, id->psn);
	mad_set(mad, MAD_REP_responder_resources, id->responder_resources);
	mad_set(mad, MAD_REP_initiator_depth, id->initiator_depth);
	mad_set(mad, MAD_REP_end_to_end_flow_control, p->flow_control);
	mad_set(mad, MAD_REP_rnr_retry_count,
		cm_min(p->rnr_retry_count, CM_MAX_RETRIES));
	mad_set(mad, MAD_REP_srq, xrc || p->srq);
	mad_set(mad, MAD_REP_local_ca_guid, ca_guid(cm, id));
	mad_set_bytes(mad, MAD_REP_private_data, 0, p->private_data,
		      p->private_data_len);
	send_mad(cm, id, mad);
}

void cm_sent_rtu(struct cm *cm, const struct cm_id *id)
{
	const uint32_t own = cm_comm_id(cm, id);
	uint8_t mad[MAD_BYTES];

	if (!needs_mad(cm, id))
		return;
	mad_begin(mad, MAD_RTU, tid(MAD_REQ, own));
	mad_set(mad, MAD_RTU_local_comm_id, own);
	mad_set(mad, MAD_RTU_remote_comm_id, id->remote_comm_id);
	send_mad(cm, id, mad);
}

void cm_sent_mra(struct cm *cm, const struct cm_id *id, unsigned int message)
{
	const uint32_t own = cm_comm_id(cm, id);
	uint8_t mad[MAD_BYTES];

	if (!needs_mad(cm, id))
		return;
	mad_begin(mad, MAD_MRA,
		  id->cm == CM_REP_RCVD ? tid(MAD_REQ, own) :
					  response_tid(MAD_REQ, id));
	mad_set(mad, MAD_MRA_local_comm_id, own);
	mad_set(mad, MAD_MRA_remote_comm_id, id->remote_comm_id);
	mad_set(mad, MAD_MRA_message, message);
	mad_set(mad, MAD_MRA_service_timeout, CM_WIRE_LONGEST);
	send_mad(cm, id, mad);
}

/*
 * For reason "timeout", store the CA GUID in the additional reject
 * information.  The sender of such a REJ may not know the peer's
 * communication ID; the kernel then finds the connection by the CA GUID.
 */
static void rej_put_ca(struct cm *cm, const struct cm_id *id, uint8_t *mad)
{
	const uint64_t guid = htobe64(ca_guid(cm, id));

	mad_set(mad, MAD_REJ_info_length, sizeof(guid));
	mad_set_bytes(mad, MAD_REJ_info, 0, &guid, sizeof(guid));
}

static void rej_sent(struct cm *cm, const struct cm_id *id, uint64_t tid,
		     uint32_t own, unsigned int message, unsigned int reason,
		     const void *data, uint8_t len)
{
	uint8_t mad[MAD_BYTES];

	mad_begin(mad, MAD_REJ, tid);
	mad_set(mad, MAD_REJ_local_comm_id, own);
	mad_set(mad, MAD_REJ_remote_comm_id, id->remote_comm_id);
	mad_set(mad, MAD_REJ_message, message);
	mad_set(mad, MAD_REJ_reason, reason);
	if (reason == CM_REJ_TIMEOUT)
		rej_put_ca(cm, id, mad);
	mad_set_bytes(mad, MAD_REJ_private_data, 0, data, len);
	send_mad(cm, id, mad);
}

/* In CM_REQ_RCVD the REJ is the first response: its own ID is 0. */
void cm_sent_rej(struct cm *cm, const struct cm_id *id, unsigned int reason,
		 const void *data, uint8_t len)
{
	const bool first = id->cm == CM_REQ_RCVD;
	const bool passive = first || id->cm == CM_REP_SENT;
	uint32_t own;

	if (!needs_mad(cm, id))
		return;
	own = first ? 0 : cm_comm_id(cm, id);
	rej_sent(cm, id,
		 passive ? response_tid(MAD_REQ, id) : tid(MAD_REQ, own), own,
		 first		       ? MAD_ABOUT_REQ :
		 id->cm == CM_REP_RCVD ? MAD_ABOUT_REP :
					 MAD_ABOUT_OTHER,
		 reason, data, len);
}

void cm_sent_rej_rep(struct cm *cm, const struct cm_id *id, uint32_t own,
		     unsigned int reason)
{
	if (needs_mad(cm, id))
		rej_sent(cm, id, response_tid(MAD_REQ, id), own, MAD_ABOUT_REP,
			 reason, NULL, 0);
}

void cm_sent_dreq_as(struct cm *cm, const struct cm_id *id, uint32_t own)
{
	uint8_t mad[MAD_BYTES];

	if (!needs_mad(cm, id))
		return;
	mad_begin(mad, MAD_DREQ, tid(MAD_DREQ, own));
	mad_set(mad, MAD_DREQ_local_comm_id, own);
	mad_set(mad, MAD_DREQ_remote_comm_id, id->remote_comm_id);
	mad_set(mad, MAD_DREQ_remote_qpn, id->remote_qpn);
	send_mad(cm, id, mad);
}

void cm_sent_dreq(struct cm *cm, const struct cm_id *id)
{
	cm_sent_dreq_as(cm, id, cm_comm_id(cm, id));
}

static void drep_sent(struct cm *cm, const struct cm_id *id, uint32_t own)
{
	uint8_t mad[MAD_BYTES];

	mad_begin(mad, MAD_DREP, response_tid(MAD_DREQ, id));
	mad_set(mad, MAD_DREP_local_comm_id, own);
	mad_set(mad, MAD_DREP_remote_comm_id, id->remote_comm_id);
	send_mad(cm, id, mad);
}

void cm_sent_drep_as(struct cm *cm, const struct cm_id *id, uint32_t own)
{
	if (needs_mad(cm, id))
		drep_sent(cm, id, own);
}

void cm_sent_drep(struct cm *cm, const struct cm_id *id)
{
	cm_sent_drep_as(cm, id, cm_comm_id(cm, id));
}

void cm_sent_sidr_rep(struct cm *cm, const struct cm_id *id, int status,
		      const void *data, uint8_t len)
{
	uint8_t mad[MAD_BYTES];

	if (!needs_mad(cm, id))
		return;
	mad_begin(mad, MAD_SIDR_REP, response_tid(MAD_SIDR_REQ, id));
	mad_set(mad, MAD_SIDR_REP_request_id, id->remote_comm_id);
	mad_set(mad, MAD_SIDR_REP_status, (uint64_t)status);
	mad_set(mad, MAD_SIDR_REP_service_id, cm_service_id(id, &id->src));
	if (!status) {
		mad_set(mad, MAD_SIDR_REP_qpn, id->qpn);
		mad_set(mad, MAD_SIDR_REP_qkey, id->qkey);
	}
	mad_set_bytes(mad, MAD_SIDR_REP_private_data, 0, data, len);
	send_mad(cm, id, mad);
}

/*
 * Return a temporary id in the role of the receiver of @id's messages, for
 * answers from a place where no id exists.
 */
static struct cm_id temporary_peer_id(struct cm *cm, const struct cm_id *id)
{
	struct cm_id none = { .cm = CM_REQ_RCVD, .ps = id->ps };

	none.src = id->dst;
	memcpy(none.sgid, id->dgid, sizeof(none.sgid));
	memcpy(none.dgid, id->sgid, sizeof(none.dgid));
	none.path_tos = id->path_tos;
	none.path_flow = id->path_flow;
	none.remote_comm_id = cm_comm_id(cm, id);
	none.remote_qpn = id->qpn;
	return none;
}

void cm_sent_drep_unknown(struct cm *cm, const struct cm_id *id)
{
	struct cm_id none;

	if (!cm->sent)
		return; /* only traced: never sent to another host */
	none = temporary_peer_id(cm, id);
	drep_sent(cm, &none, id->remote_comm_id);
}

void cm_sent_refusal(struct cm *cm, const struct cm_id *client,
		     unsigned int reason)
{
	struct cm_id none;

	if (!cm->sent)
		return; /* only traced: never sent to another host */
	none = temporary_peer_id(cm, client);
	if (client->qp_type == CM_QPT_UD)
		cm_sent_sidr_rep(cm, &none, (int)reason, NULL, 0);
	else
		cm_sent_rej(cm, &none, reason, NULL, 0);
}
