// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connecting and disconnecting; the rules are cm/conn.c's. */
#include "command.h"

int ucma_connect(struct ucma *u)
{
	struct rdma_ucm_connect cmd;
	struct cm_id *id;
	int err;

	if (u->in_len < offsetof(struct rdma_ucm_connect, ece))
		return -EINVAL;
	ucma_get(u, &cmd);
	if (!cmd.conn_param.valid)
		return -EINVAL;
	id = ucma_id_dev(u, cmd.id, &err);
	return id ? cm_connect(&u->cm, id, &cmd.conn_param, &cmd.ece) : err;
}

int ucma_accept(struct ucma *u)
{
	struct rdma_ucm_accept cmd;
	struct cm_id *id;
	int err;

	if (u->in_len < offsetof(struct rdma_ucm_accept, ece))
		return -EINVAL;
	id = ucma_get_dev(u, &cmd, &err);
	if (!id)
		return err;
	/* only AF_IB connections say which Q_Key they want */
	if (id->src.sa.sa_family != CM_AF_IB)
		cmd.conn_param.qkey = 0;
	return cm_accept(&u->cm, id,
			 cmd.conn_param.valid ? &cmd.conn_param : NULL,
			 &cmd.ece, cmd.uid);
}

int ucma_reject(struct ucma *u)
{
	struct rdma_ucm_reject cmd;
	struct cm_id *id;
	int err;

	ucma_get(u, &cmd);
	if (!cmd.reason)
		cmd.reason = CM_REJ_CONSUMER;
	if (cmd.reason != CM_REJ_CONSUMER && cmd.reason != CM_REJ_VENDOR_OPTION)
		return -EINVAL;
	id = ucma_id_dev(u, cmd.id, &err);
	return id ? cm_reject(&u->cm, id, cmd.reason, cmd.private_data,
			      cmd.private_data_len) :
		    err;
}

int ucma_disconnect(struct ucma *u)
{
	struct rdma_ucm_disconnect cmd;
	struct cm_id *id;
	int err;

	id = ucma_get_dev(u, &cmd, &err);
	return id ? cm_disconnect(&u->cm, id) : err;
}

int ucma_notify(struct ucma *u)
{
	struct rdma_ucm_notify cmd;
	struct cm_id *id;
	int err;

	id = ucma_get_dev(u, &cmd, &err);
	return id ? cm_notify(&u->cm, id, cmd.event) : err;
}
