// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands that make and end connections: CONNECT, ACCEPT, REJECT, DISCONNECT
 * and NOTIFY.  They check parameters that depend on librdmacm's ABI and call
 * cm/conn.c, which has the state machine.  ucma.c calls them with the tables
 * locked.
 */
#include "command.h"

int ucma_connect(struct ucma *u)
{
	const struct rdma_ucm_connect *cmd = u->cmd;
	struct cm_id *id;
	int err;

	if (!cmd->conn_param.valid)
		return -EINVAL;
	id = ucma_id_dev(u, cmd->id, &err);
	return id ? cm_connect(&u->cm, id, &cmd->conn_param, &cmd->ece) : err;
}

int ucma_accept(struct ucma *u)
{
	struct rdma_ucm_accept *cmd = u->cmd;

	/* the Q_Key parameter is valid for AF_IB only */
	if (u->id->src.sa.sa_family != CM_AF_IB)
		cmd->conn_param.qkey = 0;
	return cm_accept(&u->cm, u->id,
			 cmd->conn_param.valid ? &cmd->conn_param : NULL,
			 &cmd->ece, cmd->uid);
}

int ucma_reject(struct ucma *u)
{
	const struct rdma_ucm_reject *cmd = u->cmd;
	const uint8_t reason = cmd->reason ? cmd->reason : CM_REJ_CONSUMER;
	struct cm_id *id;
	int err;

	if (reason != CM_REJ_CONSUMER && reason != CM_REJ_VENDOR_OPTION)
		return -EINVAL;
	id = ucma_id_dev(u, cmd->id, &err);
	return id ? cm_reject(&u->cm, id, reason, cmd->private_data,
			      cmd->private_data_len) :
		    err;
}

int ucma_disconnect(struct ucma *u)
{
	return cm_disconnect(&u->cm, u->id);
}

int ucma_notify(struct ucma *u)
{
	const struct rdma_ucm_notify *cmd = u->cmd;

	return cm_notify(&u->cm, u->id, cmd->event);
}
