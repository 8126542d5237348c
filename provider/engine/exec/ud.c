// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Unreliable datagrams. A receive gets 40 bytes for the global route header
 * (GRH), then the message (IB 11.4.1.2).
 *
 * RoCE v1		the 40 bytes are the GRH of the packet
 * RoCE v2, IPv6	the 40 bytes are the IPv6 header
 * RoCE v2, IPv4	the last 20 bytes are the IPv4 header (annex A17.4.5)
 * InfiniBand		the 40 bytes are the GRH, or undefined without one
 *
 * A UD QP is not bound to a RoCE version: its port has GID table entries of
 * both versions for each address, so the QP receives both.
 *
 * ud_send() runs in the requester, with qp->lock held and the guard raised.
 * There is no acknowledgement: a datagram without receiver is dropped.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>

#include "engine/core/log.h"
#include "engine/core/observe.h"
#include "engine/qp/counters.h"
#include "engine/qp/qp.h"
#include "ud.h"
#include "engine/qp/why.h"

#define UDP_BYTES 8
#define IB_BYTES 24 /* BTH, DETH and the invariant CRC */
#define NEXT_IS_BTH 0x1b /* "next header" of a GRH before a BTH */

static uint16_t ip_checksum(const void *header)
{
	const uint8_t *p = header;
	uint32_t sum = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum & 0xffff);
}

/* flags: wc_flags of the completion */
static void grh_fill(const uint8_t sgid[16], const struct urxe_av *av,
		     uint8_t flags, uint64_t length, uint8_t grh[GRH_BYTES])
{
	bool v1 = flags & (URXE_CQE_ROCE_V1 | URXE_CQE_IB);
	uint16_t payload = (v1 ? 0 : UDP_BYTES) + length + IB_BYTES;
	struct iphdr ip = { 0 };
	uint32_t word;

	memset(grh, 0, GRH_BYTES);
	if (!(flags & IBV_WC_GRH))
		return;
	if (flags & URXE_CQE_IPV4) {
		ip.version = 4;
		ip.ihl = 5;
		ip.tos = av->traffic_class;
		ip.tot_len = htons(20 + payload);
		ip.frag_off = htons(0x4000);
		ip.ttl = av->hop_limit;
		ip.protocol = IPPROTO_UDP;
		memcpy(&ip.saddr, sgid + 12, 4);
		memcpy(&ip.daddr, av->dgid + 12, 4);
		ip.check = ip_checksum(&ip);
		memcpy(grh + 20, &ip, 20);
		return;
	}
	word = htonl(6u << 28 | (uint32_t)av->traffic_class << 20 |
		     av->flow_label);
	payload = htons(payload);
	memcpy(grh, &word, 4);
	memcpy(grh + 4, &payload, 2);
	grh[6] = v1 ? NEXT_IS_BTH : IPPROTO_UDP;
	grh[7] = av->hop_limit;
	memcpy(grh + 8, sgid, 16);
	memcpy(grh + 24, av->dgid, 16);
}

/*
 * Return the destination QP @qpn, from the QP's cache or newly opened, or
 * NULL.
 */
static struct urxe_conn *ud_destination(struct urxe_qp *qp, uint32_t qpn)
{
	struct urxe_conn *c = &qp->dests[qpn % UD_DESTS];

	if (likely(c->peer && c->qpn == qpn)) {
		conn_retarget(qp, c, GUARD_SEND);
		if (!conn_qpn_is_reused(c))
			return c;
	}
	conn_drop(c);
	/*
	 * the guard may name a key of the previous destination; conn_open()
	 * moves it
	 */
	guard_name(qp->guard, GUARD_SEND);
	return conn_open(qp, c, qpn, 0) ? c : NULL;
}

static void ud_publish(struct receipt *rc)
{
	if (!rc->conn)
		return;
	responder_publish(rc);
	responder_notify(rc);
	rc->conn = NULL;
	rc->notify = false;
}

/* Does another device than that of the QP of c have the destination GID? */
static bool __attribute__((noinline))
ud_is_elsewhere(const struct urxe_qp *qp, const struct urxe_wqe *w,
		const struct urxe_conn *c)
{
	if (w->ud.qpn == URXE_MCAST_QPN ||
	    fabric_gid_owner(qp->ctx->fabric->dev, w->ud.av.dgid) ==
		    (int)c->peer->device)
		return false;
	urxe_note(
		"datagram dropped: QP 0x%x is not on the device that has the destination GID",
		c->qpn);
	return true;
}

/*
 * InfiniBand: is the port of the QP of c the one that the LID leads to, or, of
 * a multicast LID, one that has joined the group?
 */
static bool ud_ib_is_addressed(const struct urxe_qp *qp,
			       const struct urxe_wqe *w,
			       const struct urxe_conn *c)
{
	struct urxe_dev *dev = qp->ctx->fabric->dev;
	const struct urxe_hca *to = c->peer->hca;

	if (w->ud.qpn == URXE_MCAST_QPN ?
		    mcast_reaches(dev, w->dlid, w->ud.av.dgid,
				  c->peer->device) :
		    port_has_lid(&to->subnet, w->dlid) &&
			    (!w->ud.av.is_global ||
			     !memcmp(to->gid[0].raw, w->ud.av.dgid, 16)))
		return true;
	if (w->ud.qpn == URXE_MCAST_QPN)
		urxe_note(
			"datagram for QP 0x%x dropped: its port has not joined the multicast group with LID 0x%x",
			c->qpn, w->dlid);
	else
		urxe_note(
			"datagram dropped: dlid %u or the DGID is not of the port of QP 0x%x, which has LID %u",
			w->dlid, c->qpn, port_lid(&to->subnet));
	return false;
}

/* The part of ud_has_path() for InfiniBand: LIDs, GIDs and P_Keys. */
static bool __attribute__((noinline))
ud_ib_has_path(struct urxe_qp *qp, const struct urxe_wqe *w,
	       const struct urxe_conn *c)
{
	struct urxe_hca *to = c->peer->hca;
	const uint16_t mine = port_pkey(&qp->ctx->hca->subnet,
					load_relaxed(&qp->sh->pkey_index));
	const uint16_t theirs =
		port_pkey(&to->subnet, load_relaxed(&c->sh->pkey_index));

	if (!ud_ib_is_addressed(qp, w, c))
		return false;
	if (!pkeys_match(mine, theirs)) {
		fetch_add_relaxed(&to->counter[URXE_CNT_BAD_PKEY], 1);
		urxe_note(
			"datagram for QP 0x%x dropped: P_Key 0x%x does not match 0x%x of the QP",
			c->qpn, mine, theirs);
		return false;
	}
	if (qp->count_to != to)
		counters_move(qp, to);
	return true;
}

/* Are both ports up, and does the destination GID lead to the QP of c? */
static bool ud_has_path(struct urxe_qp *qp, const struct urxe_wqe *w,
			const struct urxe_conn *c)
{
	if (unlikely(!conn_has_link(c)))
		return false;
	if (unlikely(qp->ctx->hca->infiniband))
		return ud_ib_has_path(qp, w, c);
	if (unlikely(w->ud.av.device_or_bits != c->peer->device) &&
	    ud_is_elsewhere(qp, w, c))
		return false;
	if (unlikely(qp->count_to != c->peer->hca))
		counters_move(qp, c->peer->hca);
	return true;
}

/* The fields of a completion that only InfiniBand has. */
static void ud_ib_fill(const struct urxe_qp *qp, const struct urxe_wqe *w,
		       const struct urxe_conn *c, struct urxe_cqe *e)
{
	const struct urxe_subnet *from = &qp->ctx->hca->subnet;
	const struct urxe_subnet *to = &c->peer->hca->subnet;

	e->slid = port_source_lid(from, w->ud.av.device_or_bits);
	e->path_bits = w->dlid & ((1u << port_lmc(to)) - 1);
	e->sl = w->ud.av.sl;
	if (w->ud.qpn == URXE_MCAST_QPN)
		e->path_bits = 0;
}

static void ud_deliver(struct urxe_qp *qp, const struct urxe_wqe *w,
		       uint32_t qpn, const struct urxe_seg *src, uint8_t grh,
		       struct receipt *rc)
{
	struct urxe_conn *c = ud_destination(qp, qpn);
	uint32_t qkey = ud_qkey(qp, w);
	enum response resp;

	rc->conn = NULL;
	rc->notify = false;
	if (!c || !ud_has_path(qp, w, c) || !conn_accepts_datagram(c, qkey))
		return;
	observe(OBSERVE_ARRIVES, qp, w, qpn);
	resp = responder_receive(qp, c, w, src, grh, IBV_WC_SUCCESS, rc);
	if (grh & URXE_CQE_IB && rc->conn)
		ud_ib_fill(qp, w, c, rc->ref.slot.cqe);
	if (resp == RESP_RNR)
		urxe_note("datagram dropped: QP 0x%x has no receive posted",
			  qpn);
	else if (resp)
		why_dropped(qp, w);
	if (resp != RESP_NAK_INVALID && resp != RESP_NAK_OPERATION)
		return;
	ud_publish(rc); /* the failed receive precedes the flushed ones */
	conn_break(c, RESP_NAK_OPERATION, qp, w);
}

void ud_spoil_grh(const struct urxe_context *ctx, uint8_t grh[GRH_BYTES])
{
	size_t i;

	for (i = 0; i < GRH_BYTES - sizeof(struct iphdr) && ctx->grh_noise; i++)
		grh[i] = (uint8_t)(ctx->grh_noise * (2 * i + 1) >> 56);
}

/* Return the wc_flags for a packet sent from that GID. */
static uint8_t ud_flags(const struct urxe_qp *qp, const struct urxe_av *av,
			const uint8_t sgid[16])
{
	if (unlikely(qp->ctx->hca->infiniband))
		return URXE_CQE_IB | (av->is_global ? IBV_WC_GRH : 0);
	if (av->roce_v1)
		return IBV_WC_GRH | URXE_CQE_ROCE_V1;
	return gid_is_ipv4(sgid) ? IBV_WC_GRH | URXE_CQE_IPV4 : IBV_WC_GRH;
}

static bool ud_has_packet(const uint8_t sgid[16], const struct urxe_wqe *w,
			  uint8_t flags)
{
	const struct urxe_av *av = &w->ud.av;

	if (likely(w->ud.qpn == URXE_MCAST_QPN || flags & URXE_CQE_IB ||
		   gids_fit(av_roce(av), sgid, av->dgid)))
		return true;
	urxe_note(
		"datagram dropped: one of the two GIDs is IPv4, the other IPv6");
	return false;
}

void ud_send(struct urxe_qp *qp, const struct urxe_wqe *w, struct urxe_seg *src,
	     struct receipt *rc)
{
	struct urxe_dev *dev = qp->ctx->fabric->dev;
	const uint8_t *sgid = qp->ctx->hca->gid[w->ud.av.gid_row].raw;
	uint8_t flags = ud_flags(qp, &w->ud.av, sgid);
	uint32_t members[URXE_MAX_MCAST_ATTACH + 1], n, i;
	uint8_t grh[GRH_BYTES];

	rc->conn = NULL;
	rc->notify = false;
	if (!ud_has_packet(sgid, w, flags))
		return;
	grh_fill(sgid, &w->ud.av, flags, w->length, grh);
	if (flags & URXE_CQE_IPV4 || !(flags & IBV_WC_GRH))
		ud_spoil_grh(qp->ctx, grh);
	src[0].ptr = (char *)grh;
	src[0].len = GRH_BYTES;
	if (w->ud.qpn != URXE_MCAST_QPN) {
		ud_deliver(qp, w, w->ud.qpn, src, flags, rc);
		return;
	}
	n = mcast_members(dev, w->ud.av.dgid, members);
	for (i = 0; i < n; i++) {
		if (members[i] == qp->qpn && qp->block_own_mcast)
			continue;
		/*
		 * publish the previous one: ud_destination() may drop its
		 * connection
		 */
		ud_publish(rc);
		ud_deliver(qp, w, members[i], src, flags, rc);
	}
}
