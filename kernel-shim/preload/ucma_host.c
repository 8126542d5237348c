// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which of the two rdma_cm carries out a command. */
#include "ucma_host.h"

#define AT(cmd, name) [RDMA_USER_CM_CMD_##cmd] = offsetof(struct name, id)

/* Where the id's number is; of commands that are not here it is no matter. */
static const uint16_t id_at[] = {
	AT(BIND_IP, rdma_ucm_bind_ip),
	AT(RESOLVE_IP, rdma_ucm_resolve_ip),
	AT(RESOLVE_ROUTE, rdma_ucm_resolve_route),
	AT(QUERY_ROUTE, rdma_ucm_query),
	AT(CONNECT, rdma_ucm_connect),
	AT(LISTEN, rdma_ucm_listen),
	AT(ACCEPT, rdma_ucm_accept),
	AT(REJECT, rdma_ucm_reject),
	AT(DISCONNECT, rdma_ucm_disconnect),
	AT(INIT_QP_ATTR, rdma_ucm_init_qp_attr),
	AT(SET_OPTION, rdma_ucm_set_option),
	AT(NOTIFY, rdma_ucm_notify),
	AT(JOIN_IP_MCAST, rdma_ucm_join_ip_mcast),
	AT(QUERY, rdma_ucm_query),
	AT(BIND, rdma_ucm_bind),
	AT(RESOLVE_ADDR, rdma_ucm_resolve_addr),
	AT(JOIN_MCAST, rdma_ucm_join_mcast),
};

uint32_t host_number(const struct ucma *u, uint32_t cmd)
{
	uint32_t number = UINT32_MAX; /* nobody's */

	if (u->in_len >= id_at[cmd] + sizeof(number))
		memcpy(&number, u->in + id_at[cmd], sizeof(number));
	return number;
}

void host_find(struct ucma *u, uint32_t number, struct host_id *h)
{
	struct cm_id *id = NULL;
	int err;

	memset(h, 0, sizeof(*h));
	h->fd = -1;
	if (ucma_begin(&u->cm))
		return;
	cm_lock(&u->cm);
	u->c = ucma_chan(u, u->fd);
	if (u->c)
		id = ucma_id(u, number, &err);
	if (id) {
		h->key = host_key(&u->cm, id);
		h->fd = host_fd(&u->cm, u->c);
		h->there = id->host && h->fd >= 0;
		h->number = id->host - 1;
		h->chosen = id->flags & CM_F_HOST;
		h->bound = id->cma != CMA_IDLE;
	}
	cm_unlock(&u->cm);
}

int host_forward(struct ucma *u, uint32_t cmd, const struct host_id *h)
{
	char buf[HOST_COMMAND_MAX];

	if (u->in_len > sizeof(buf) ||
	    u->in_len < id_at[cmd] + sizeof(h->number))
		return -EINVAL;
	memcpy(buf, u->in, u->in_len);
	memcpy(buf + id_at[cmd], &h->number, sizeof(h->number));
	return host_send(h->fd, cmd, buf, u->in_len, u->out_len);
}

void host_choose(struct ucma *u, const struct host_id *h, bool chosen)
{
	struct cm_id *id;

	cm_lock(&u->cm);
	id = host_by_key(&u->cm, h->key);
	if (id && chosen)
		id->flags |= CM_F_HOST;
	else if (id)
		id->flags &= ~(uint32_t)CM_F_HOST;
	cm_unlock(&u->cm);
}

void host_drop(struct ucma *u, const struct host_id *h)
{
	struct cm_id *id;

	cm_lock(&u->cm);
	id = host_by_key(&u->cm, h->key);
	if (id) {
		id->host = 0;
		id->flags &= ~(uint32_t)CM_F_HOST;
	}
	cm_unlock(&u->cm);
	host_destroy(h->fd, RDMA_USER_CM_CMD_DESTROY_ID, h->number);
}

/* Both have it until one of them is chosen. */
static int set_option(struct ucma *u, const struct host_id *h)
{
	int ret;

	if (h->there && h->chosen)
		return host_forward(u, RDMA_USER_CM_CMD_SET_OPTION, h);
	ret = ucma_run(u, RDMA_USER_CM_CMD_SET_OPTION);
	if (!ret && h->there)
		host_forward(u, RDMA_USER_CM_CMD_SET_OPTION, h);
	return ret;
}

/* The application's name for the id is ours to keep. */
static int accept_it(struct ucma *u, const struct host_id *h)
{
	struct rdma_ucm_accept cmd;
	struct ucma sub = *u;
	struct cm_id *id;
	uint64_t old = 0;
	int ret;

	ucma_get(u, &cmd);
	if (!cmd.conn_param.valid)
		return host_forward(u, RDMA_USER_CM_CMD_ACCEPT, h);
	/* events may come before the host has said that all is well */
	cm_lock(&u->cm);
	id = host_by_key(&u->cm, h->key);
	if (id) {
		old = id->uid;
		id->uid = cmd.uid;
	}
	cm_unlock(&u->cm);
	cmd.uid = h->key;
	sub.in = (const char *)&cmd;
	if (sub.in_len > sizeof(cmd))
		sub.in_len = sizeof(cmd);
	ret = host_forward(&sub, RDMA_USER_CM_CMD_ACCEPT, h);
	if (!ret)
		return 0;
	cm_lock(&u->cm);
	id = host_by_key(&u->cm, h->key);
	if (id)
		id->uid = old;
	cm_unlock(&u->cm);
	return ret;
}

static int by_id(struct ucma *u, uint32_t cmd)
{
	struct host_id h;

	host_find(u, host_number(u, cmd), &h);
	if (cmd == RDMA_USER_CM_CMD_SET_OPTION)
		return set_option(u, &h);
	if (!h.there || !h.chosen)
		return ucma_run(u, cmd);
	if (cmd == RDMA_USER_CM_CMD_ACCEPT)
		return accept_it(u, &h);
	return host_forward(u, cmd, &h);
}

int ucma_host_run(struct ucma *u, uint32_t cmd)
{
	switch (cmd) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		return host_create_id(u);
	case RDMA_USER_CM_CMD_DESTROY_ID:
		return host_destroy_id(u);
	case RDMA_USER_CM_CMD_BIND_IP:
	case RDMA_USER_CM_CMD_BIND:
		return host_bind(u, cmd);
	case RDMA_USER_CM_CMD_RESOLVE_IP:
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		return host_resolve(u, cmd);
	case RDMA_USER_CM_CMD_LISTEN:
		return host_listen(u);
	case RDMA_USER_CM_CMD_GET_EVENT:
		return ucma_run(u, cmd);
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
	case RDMA_USER_CM_CMD_JOIN_MCAST:
		return host_join(u, cmd);
	case RDMA_USER_CM_CMD_LEAVE_MCAST:
		return host_leave(u);
	case RDMA_USER_CM_CMD_MIGRATE_ID:
		return host_migrate_id(u);
	default:
		return by_id(u, cmd);
	}
}
