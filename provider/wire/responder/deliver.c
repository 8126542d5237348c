// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UD responder: deliver datagrams of other hosts, the GRH followed by the
 * payload (engine/exec/ud.c).  Runs in the socket owner's thread.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <string.h>

#include "engine/core/log.h"
#include "engine/exec/ud.h"
#include "engine/qp/why.h"
#include "server.h"
#include "verbs/ah.h"

static void datagram_wqe(const struct wire_packet *p, struct urxe_wqe *w)
{
	memset(w, 0, sizeof(*w));
	w->length = p->length;
	w->flags = p->bth.solicited ? IBV_SEND_SOLICITED : 0;
	w->opcode = IBV_WR_SEND;
	if (wire_parts(p->bth.opcode) & WIRE_HAS(IMMDT)) {
		w->opcode = IBV_WR_SEND_WITH_IMM;
		w->imm = htonl(p->immdt.imm);
	}
}

static void datagram_deliver(struct wire_server *s, uint32_t qpn,
			     const struct wire_received *in,
			     const struct urxe_wqe *w,
			     const struct urxe_seg *src)
{
	const uint8_t grh = wire_path_is_ipv4(&in->path) ?
				    IBV_WC_GRH | URXE_CQE_IPV4 :
				    IBV_WC_GRH;
	struct cached_qp *v = server_find_qp(s, qpn, IBV_QPT_UD);
	struct urxe_conn *c;
	enum response resp;
	struct receipt rc;

	if (!v || !conn_accepts_datagram(&v->conn, in->packet.deth.qkey)) {
		server_count(s, URXE_CNT_UNCLAIMED);
		return;
	}
	c = &v->conn;
	s->me.qpn = in->packet.deth.qpn;
	resp = responder_receive(&s->me, c, w, src, grh, IBV_WC_SUCCESS, &rc);
	if (!resp)
		server_count(s, URXE_CNT_RECVS);
	if (resp == RESP_RNR)
		urxe_note("QP 0x%x: datagram dropped: no receive is posted",
			  qpn);
	if (rc.conn)
		responder_publish(&rc);
	responder_notify(&rc);
	if (resp == RESP_NAK_INVALID || resp == RESP_NAK_OPERATION)
		conn_break(c, RESP_NAK_OPERATION, NULL, NULL);
}

void deliver_datagram(struct wire_server *s, const struct wire_received *in)
{
	struct urxe_dev *dev = s->me.ctx->fabric->dev;
	uint32_t members[URXE_MAX_MCAST_ATTACH + 1], n, i;
	uint8_t grh[GRH_BYTES];
	struct urxe_seg src[] = {
		{ .ptr = (char *)grh, .len = GRH_BYTES },
		{ .ptr = (char *)(uintptr_t)in->packet.payload,
		  .len = in->packet.length },
	};
	struct urxe_wqe w;

	wire_put_grh(in, grh);
	if (wire_path_is_ipv4(&in->path))
		ud_spoil_grh(s->me.ctx, grh);
	datagram_wqe(&in->packet, &w);
	s->me.type = IBV_QPT_UD;
	if (in->packet.bth.qpn != URXE_MCAST_QPN) {
		datagram_deliver(s, in->packet.bth.qpn, in, &w, src);
		return;
	}
	/* members already have multicasts that this fabric sent */
	if (ah_gid_is_ours(dev, in->path.sgid))
		return;
	n = mcast_members(dev, in->path.dgid, members);
	for (i = 0; i < n; i++)
		datagram_deliver(s, members[i], in, &w, src);
}
