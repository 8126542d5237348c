// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Service ID resolution (SIDR; IB specification, 12.11), by which UD ids get
 * the QPN and the Q_Key of a server.  This file has the SIDR_REP; conn.c
 * sends the SIDR_REQ.  Called under the lock of the tables, for the commands
 * accept and reject, from end.c, and for messages from other hosts
 * (wire_recv.c).
 *
 *	client				server
 *	CM_SIDR_SENT	SIDR_REQ ->	CM_SIDR_RCVD, event CONNECT_REQUEST
 *	CM_IDLE		<- SIDR_REP	CM_IDLE
 *
 * The client gets ESTABLISHED if the status is 0, UNREACHABLE with the status
 * if it is not, and ADDR_ERROR if the Q_Key conflicts with its own.
 */
#include <errno.h>
#include <string.h>

#include "wire.h"

void cm_fill_private(struct cm_event *e, const void *data, uint8_t len,
		     uint8_t room)
{
	if (len)
		memcpy(e->resp.param.conn.private_data, data, len);
	e->resp.param.conn.private_data_len = room;
}

void cm_fill_ud_private(struct cm_event *e, const void *data, uint8_t len,
			uint8_t room)
{
	if (len)
		memcpy(e->resp.param.ud.private_data, data, len);
	e->resp.param.ud.private_data_len = room;
}

static uint32_t qkey_of_space(const struct cm_id *id)
{
	return id->ps == RDMA_PS_IPOIB ? CM_IPOIB_QKEY : CM_UDP_QKEY;
}

int cm_set_qkey(struct cm_id *id, uint32_t qkey)
{
	if (qkey && id->qkey && id->qkey != qkey)
		return -EINVAL;
	if (!id->qkey)
		id->qkey = qkey ? qkey : qkey_of_space(id);
	return 0;
}

void cm_got_sidr_reply(struct cm *cm, struct cm_id *client,
		       const struct cm_id *server, const void *data,
		       uint8_t len)
{
	int ret = cm_set_qkey(client, server->qkey);
	struct cm_event *e;

	client->cm = CM_IDLE;
	client->deadline = 0;
	e = cm_event_new(cm, client, ret ? CM_EV_ADDR_ERROR : CM_EV_ESTABLISHED,
			 ret);
	if (!e)
		return;
	cm_fill_ud_private(e, data, len, CM_SIDR_REP_PRIVATE);
	if (!ret) {
		e->resp.param.ud.qp_num = server->qpn;
		e->resp.param.ud.qkey = server->qkey;
		cm_fill_path_ah(cm, &e->resp.param.ud.ah_attr, client);
	}
	cm_event_send(cm, e);
}

int cm_send_sidr_reply(struct cm *cm, struct cm_id *id,
		       const struct rdma_ucm_conn_param *p)
{
	struct cm_id *client = cm_deref(cm, id->peer);

	if (id->cm != CM_SIDR_RCVD ||
	    p->private_data_len > CM_SIDR_REP_PRIVATE ||
	    cm_set_qkey(id, p->qkey))
		return -EINVAL;
	id->cm = CM_IDLE;
	id->qpn = p->qp_num & URXE_QPN_MASK;
	cm_unlink(cm, id);
	cm_sent_sidr_rep(cm, id, 0, p->private_data, p->private_data_len);
	if (cm_is_remote(id)) {
		cm_wire_keep_reply(id, p, &id->ece);
		id->flags |= CM_F_REPLIED;
	}
	if (client && client->cm == CM_SIDR_SENT)
		cm_got_sidr_reply(cm, client, id, p->private_data,
				  p->private_data_len);
	return 0;
}

void cm_got_sidr_reject(struct cm *cm, struct cm_id *id, int status,
			const void *data, uint8_t len)
{
	struct cm_event *e;

	if (id->cm != CM_SIDR_SENT)
		return;
	cm_to_idle(cm, id);
	e = cm_event_new(cm, id, CM_EV_UNREACHABLE, status);
	if (!e)
		return;
	cm_fill_ud_private(e, data, len, CM_SIDR_REP_PRIVATE);
	cm_event_send(cm, e);
}
