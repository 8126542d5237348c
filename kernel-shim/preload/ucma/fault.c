// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fault injection for rdma_cm commands (chaos/fault.h).  A command that a
 * rule selects fails at once with an errno, or later with the error event
 * that a kernel would report.  ucma.c calls these functions with the tables
 * locked.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "chaos/fault.h"
#include "command.h"

/* Commands of each call; some calls have two, an older and a newer one. */
static const struct {
	uint8_t command, call;
} calls[] = {
	{ RDMA_USER_CM_CMD_ACCEPT, FAULT_rdma_accept },
	{ RDMA_USER_CM_CMD_BIND_IP, FAULT_rdma_bind_addr },
	{ RDMA_USER_CM_CMD_BIND, FAULT_rdma_bind_addr },
	{ RDMA_USER_CM_CMD_CONNECT, FAULT_rdma_connect },
	{ RDMA_USER_CM_CMD_CREATE_ID, FAULT_rdma_create_id },
	{ RDMA_USER_CM_CMD_DISCONNECT, FAULT_rdma_disconnect },
	{ RDMA_USER_CM_CMD_JOIN_IP_MCAST, FAULT_rdma_join_multicast },
	{ RDMA_USER_CM_CMD_JOIN_MCAST, FAULT_rdma_join_multicast },
	{ RDMA_USER_CM_CMD_LISTEN, FAULT_rdma_listen },
	{ RDMA_USER_CM_CMD_MIGRATE_ID, FAULT_rdma_migrate_id },
	{ RDMA_USER_CM_CMD_NOTIFY, FAULT_rdma_notify },
	{ RDMA_USER_CM_CMD_REJECT, FAULT_rdma_reject },
	{ RDMA_USER_CM_CMD_RESOLVE_IP, FAULT_rdma_resolve_addr },
	{ RDMA_USER_CM_CMD_RESOLVE_ADDR, FAULT_rdma_resolve_addr },
	{ RDMA_USER_CM_CMD_RESOLVE_ROUTE, FAULT_rdma_resolve_route },
	{ RDMA_USER_CM_CMD_SET_OPTION, FAULT_rdma_set_option },
};

/*
 * Return whether the command is the ACCEPT without parameters by which
 * librdmacm confirms a CONNECT_RESPONSE.  It is no call of rdma_accept(3), so
 * no rule applies to it.
 */
static bool is_confirmation(const struct ucma *u, size_t command)
{
	const struct rdma_ucm_accept *cmd = u->cmd;

	return command == RDMA_USER_CM_CMD_ACCEPT && !cmd->conn_param.valid;
}

const struct fault_rule *ucma_fault(const struct ucma *u, size_t command)
{
	const struct urxe_fabric *fabric = u->cm.f;
	const struct fault_subject s = {
		.host = fabric->dev->host[fabric->host % URXE_MAX_HOST].name
	};
	struct faults *f = faults_of_process();
	const struct fault_rule *r;
	size_t i;

	if (!f || !f->n || is_confirmation(u, command))
		return NULL;
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		if (calls[i].command != command)
			continue;
		r = fault_of_call(f, calls[i].call, &s);
		if (r)
			shim_why(
				"injected fault: rdma_cm command (rule \"%s\")",
				r->text);
		return r;
	}
	return NULL;
}

static int addr_error(struct ucma *u, bool ip, int err)
{
	const struct rdma_ucm_resolve_ip *old = u->cmd;
	const struct rdma_ucm_resolve_addr *cmd = u->cmd;
	int ret;
	struct cm_id *id = ucma_id(u, ip ? old->id : cmd->id, &ret);

	return id ? cm_event_post(&u->cm, id, CM_EV_ADDR_ERROR, -err) : ret;
}

static int route_error(struct ucma *u, int err)
{
	return u->id->cma == CMA_ADDR_RESOLVED ?
		       cm_event_post(&u->cm, u->id, CM_EV_ROUTE_ERROR, -err) :
		       -EINVAL;
}

/*
 * Connect without sending the request, and report a REJECTED or UNREACHABLE
 * event as the rule has it.  With FAULT_SILENT no event follows until the
 * request times out.
 */
static int connect_lost(struct ucma *u, const struct fault_rule *r)
{
	const struct rdma_ucm_connect *cmd = u->cmd;
	int ret;
	struct cm_id *id = ucma_id_dev(u, cmd->id, &ret);

	if (!id)
		return ret;
	id->flags &= ~(uint32_t)CM_F_WIRE; /* nothing is sent */
	ret = cmd->conn_param.valid ?
		      cm_connect_fail(&u->cm, id, &cmd->conn_param, &cmd->ece) :
		      -EINVAL;
	if (ret)
		return ret;
	if (r->effect == FAULT_REJECTED)
		cm_fail_rejected(&u->cm, id, (int)r->value);
	else if (r->effect == FAULT_UNREACHABLE)
		cm_fail_unreachable(&u->cm, id, -(int)r->value);
	return 0;
}

int ucma_run_faulty(struct ucma *u, const struct fault_rule *r,
		    int (*run)(struct ucma *u))
{
	switch (r->effect) {
	case FAULT_ADDR_ERROR:
		return addr_error(u, run == ucma_resolve_ip, (int)r->value);
	case FAULT_ROUTE_ERROR:
		return route_error(u, (int)r->value);
	case FAULT_REJECTED:
	case FAULT_UNREACHABLE:
	case FAULT_SILENT:
		return connect_lost(u, r);
	default:
		/* rdma_accept rejects the request on any error */
		if (run == ucma_accept)
			cm_reject(&u->cm, u->id, CM_REJ_CONSUMER, NULL, 0);
		return -(int)r->value;
	}
}
