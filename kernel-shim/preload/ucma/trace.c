// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Trace records of rdma_cm commands, events and messages, if URXE_TRACE names
 * a file (trace/trace.h).  Any thread that runs a command calls these
 * functions.  The file is opened once per process.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "command.h"
#include "trace/packet.h"
#include "trace/trace.h"

/* Offset + 1 of the id number in each command; 0: the command has none. */
#define ID(type, command) \
	[RDMA_USER_CM_CMD_##command] = offsetof(struct rdma_ucm_##type, id) + 1
static const uint16_t id_at[] = {
	ID(destroy_id, DESTROY_ID),
	ID(bind_ip, BIND_IP),
	ID(resolve_ip, RESOLVE_IP),
	ID(resolve_route, RESOLVE_ROUTE),
	ID(query, QUERY_ROUTE),
	ID(connect, CONNECT),
	ID(listen, LISTEN),
	ID(accept, ACCEPT),
	ID(reject, REJECT),
	ID(disconnect, DISCONNECT),
	ID(init_qp_attr, INIT_QP_ATTR),
	ID(set_option, SET_OPTION),
	ID(notify, NOTIFY),
	ID(join_ip_mcast, JOIN_IP_MCAST),
	ID(destroy_id, LEAVE_MCAST),
	ID(migrate_id, MIGRATE_ID),
	ID(query, QUERY),
	ID(bind, BIND),
	ID(resolve_addr, RESOLVE_ADDR),
	ID(join_mcast, JOIN_MCAST),
};

static void trace_begin(void)
{
	const char *path = getenv("URXE_TRACE");

	/* errors are reported by the provider */
	if (path && *path && !trace_open(path))
		trace_watch_packets(0);
}

static bool is_traced(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, trace_begin);
	return trace_is_open();
}

/* Positions of the values of CM_SENT (trace/events.h) */
enum {
	AT_MAD = 6,
	AT_PEER = AT_MAD + MAD_BYTES / 8,
	AT_ON = AT_PEER + 2,
	AT_LIDS = AT_ON + 8,
	SENT_VALUES = AT_LIDS + 3
};

/* Store on, slid, dlid and bth_pkey of CM_SENT. */
static void sent_port(const struct urxe_dev *dev, const struct cm_id *from,
		      uint64_t *value)
{
	const int device = fabric_gid_owner(dev, from->sgid);
	const int peer = fabric_gid_owner(dev, from->dgid);
	const struct urxe_subnet *subnet;

	if (device < 0)
		return;
	subnet = &dev->hca[device].subnet;
	if (dev_hcas(dev) > 1)
		node_name(dev, (uint32_t)device, (char *)(value + AT_ON));
	if (peer < 0 || !dev->hca[device].infiniband)
		return;
	value[AT_LIDS] = port_lid(subnet);
	value[AT_LIDS + 1] = port_lid(&dev->hca[peer].subnet);
	value[AT_LIDS + 2] = port_pkey(subnet, 0) | PKEY_FULL;
}

/* cm.sent: record a MAD with its addresses, as sent on a wire. */
static void trace_sent(const struct cm *cm, const struct cm_id *from,
		       const uint8_t mad[MAD_BYTES])
{
	uint64_t value[SENT_VALUES] = { 0 };

	memcpy(value, from->sgid, 16);
	memcpy(value + 2, from->dgid, 16);
	value[4] = from->path_tos;
	value[5] = from->path_flow;
	memcpy(value + AT_MAD, mad, MAD_BYTES);
	value[AT_PEER] = from->remote_qpn;
	value[AT_PEER + 1] = cm_is_remote(from);
	sent_port(cm->f->dev, from, value);
	trace_at(clock_now(), TRACE_CM_SENT, from->qpn, value,
		 trace_used(value, SENT_VALUES, AT_LIDS));
}

void ucma_trace_messages(struct cm *cm)
{
	if (!is_traced())
		return;
	trace_fabric(cm->f->ino);
	cm->sent = trace_sent;
}

uint64_t ucma_trace_begin(void)
{
	return is_traced() ? clock_now() : 0;
}

void ucma_trace_command(const struct ucma *u, unsigned int command,
			uint64_t begin, int ret)
{
	uint32_t id = 0;

	/* ucma_trace_event() records the event of GET_EVENT */
	if (!begin || command == RDMA_USER_CM_CMD_GET_EVENT)
		return;
	if (command < sizeof(id_at) / sizeof(*id_at) && id_at[command])
		memcpy(&id, (const char *)u->cmd + id_at[command] - 1,
		       sizeof(id));
	trace_at(begin, TRACE_CM_CALL, 0,
		 TRACE_LIST(command, (uint64_t)-ret, clock_now() - begin, id),
		 4);
}

void ucma_trace_event(const struct rdma_ucm_event_resp *e)
{
	uint32_t qpn = 0;

	if (!is_traced())
		return;
	if (e->event == CM_EV_CONNECT_REQUEST ||
	    e->event == CM_EV_CONNECT_RESPONSE)
		qpn = e->param.conn.qp_num;
	trace(CM_EVENT, 0, e->event, e->id, e->status, qpn);
}
