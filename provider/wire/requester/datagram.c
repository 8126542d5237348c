// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UD requester for datagrams to other hosts.  Datagrams within the fabric are
 * executed as without a wire.  Runs under qp->lock.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/socket/count.h"
#include "engine/core/log.h"
#include "engine/exec/part.h"
#include "engine/exec/ud.h"
#include "engine/qp/why.h"
#include "message.h"
#include "wire/socket/port.h"
#include "roce_requester.h"
#include "verbs/ah.h"
#include "wire/psn.h"

static bool datagram_path(const struct urxe_qp *qp, const struct urxe_wqe *w,
			  struct wire_path *path)
{
	const struct urxe_av *av = &w->ud.av;
	struct urxe_gid own;

	if (!gid_row_get(&qp->ctx->hca->gid[av->gid_row], &own))
		return false;
	memset(path, 0, sizeof(*path));
	path->qpn = qp->qpn;
	memcpy(path->sgid, own.raw, 16);
	memcpy(path->dgid, av->dgid, 16);
	path->traffic_class = av->traffic_class;
	path->hop_limit = av->hop_limit;
	path->flow_label = av->flow_label;
	return gids_fit(URXE_ROCE_V2, path->sgid, path->dgid);
}

static bool datagram_add(struct urxe_qp *qp, const struct urxe_wqe *w,
			 const struct wire_path *path, struct wire_port *port)
{
	struct urxe_seg seg[URXE_MAX_SGE] = { 0 };
	struct urxe_seg dst = { .len = w->length };
	struct wire_packet p;

	if (w->length && part_gather(qp, w, false, seg) < 0)
		return false;
	message_packet(qp, w, 0, 1, 1, &p);
	p.bth.psn = qp->psn;
	p.deth.qkey = ud_qkey(qp, w);
	p.deth.qpn = qp->qpn;
	dst.ptr = (char *)port_add(port, path, &p);
	if (!dst.ptr)
		return false;
	if (!w->length ||
	    transfer(&dst, seg, w->length, qp->ctx, false) == TRANSFER_OK)
		return true;
	port_drop(port);
	return false;
}

/*
 * Send a datagram.  UD has no acknowledgement, so errors are only noted for
 * urxe why.
 */
static void datagram_send(struct urxe_qp *qp, const struct urxe_wqe *w)
{
	struct wire_port *port = NULL;
	struct wire_path path;
	int err = 0;

	qp->count.wire_packets++;
	qp->count.wire_bytes += w->length;
	if (datagram_path(qp, w, &path))
		port = port_begin(path.sgid, &err);
	if (port) {
		datagram_add(qp, w, &path, port);
		err = port_end(port, qp->ctx->fabric);
	}
	if (port && !err)
		count_request(qp->ctx->fabric, URXE_CNT_SENDS);
	if (!port || err) {
		message_note_unsent(w->ud.qpn, (uint32_t)w->length, path.sgid,
				    err);
		why_dropped(qp, w);
	}
}

static enum verdict datagram_begin(struct urxe_qp *qp, struct run *r,
				   struct urxe_wqe *w)
{
	const struct urxe_dev *dev = qp->ctx->fabric->dev;
	bool group = w->ud.qpn == URXE_MCAST_QPN;
	enum verdict v;

	if (!group && ah_gid_is_ours(dev, w->ud.av.dgid))
		return execute(qp, r, w);
	v = execute_lost(qp, r, w);
	if (v != WR_DROPPED)
		return v;
	if (hca_is_up(qp->ctx->hca) && !w->ud.av.roce_v1) {
		datagram_send(qp, w);
	} else if (!group && w->ud.av.roce_v1) {
		why_note(WIRE_V1, w->ud.qpn);
		why_dropped(qp, w);
	}
	return group ? execute(qp, r, w) : WR_DONE;
}

static bool datagram_follows(const struct urxe_qp *qp,
			     const struct urxe_wqe *first,
			     const struct urxe_wqe *second)
{
	(void)qp;
	(void)first;
	(void)second;
	return false;
}

static uint64_t datagram_progress(struct urxe_qp *qp, uint64_t now)
{
	(void)qp;
	(void)now;
	return UINT64_MAX;
}

static void datagram_cancel(struct urxe_qp *qp)
{
	(void)qp;
}

static const struct urxe_transport transport = {
	.begin = datagram_begin,
	.follows = datagram_follows,
	.progress = datagram_progress,
	.cancel = datagram_cancel,
};

void datagram_attach(struct urxe_qp *qp)
{
	if (!qp->transport)
		qp->transport = &transport;
}
