// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ids and multicast joins that the host has as well: their birth and end. */
#include <unistd.h>

#include "ucma_host.h"

int host_send(int fd, uint32_t cmd, const void *in, size_t len, size_t out)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		char in[HOST_COMMAND_MAX];
	} buf;

	if (len > sizeof(buf.in))
		return -EINVAL;
	buf.hdr.cmd = cmd;
	buf.hdr.in = (uint16_t)len;
	buf.hdr.out = (uint16_t)out;
	memcpy(buf.in, in, len);
	return write(fd, &buf, sizeof(buf.hdr) + len) < 0 ? -errno : 0;
}

void host_destroy(int fd, uint32_t cmd, uint32_t number)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id in = {
		.response = (uintptr_t)&resp,
		.id = number,
	};

	/* events are counted where the application fetches them: here */
	host_send(fd, cmd, &in, sizeof(in), sizeof(resp));
}

/* Generations change when a table entry is used again, so keys do not. */
uint64_t host_key(struct cm *cm, const struct cm_id *id)
{
	return (uint64_t)id->gen << 32 | cm_id_ref(cm, id);
}

struct cm_id *host_by_key(struct cm *cm, uint64_t key)
{
	return cm_deref(
		cm, (struct cm_ref){ (uint32_t)key, (uint32_t)(key >> 32) });
}

int host_create_id(struct ucma *u)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_create_id cmd;
	struct host_id h;
	struct cm_id *id;
	int ret;

	ret = ucma_run(u, RDMA_USER_CM_CMD_CREATE_ID);
	if (ret)
		return ret;
	ucma_get(u, &cmd);
	memcpy(&resp, (void *)(uintptr_t)cmd.response, sizeof(resp));
	host_find(u, resp.id, &h);
	cmd.response = (uintptr_t)&resp;
	cmd.uid = h.key;
	if (h.fd < 0 || host_send(h.fd, RDMA_USER_CM_CMD_CREATE_ID, &cmd,
				  sizeof(cmd), sizeof(resp)))
		return 0; /* ours alone */
	cm_lock(&u->cm);
	id = host_by_key(&u->cm, h.key);
	if (id)
		id->host = resp.id + 1;
	cm_unlock(&u->cm);
	return 0;
}

/*
 * The number of request nth (0 is the oldest) that waits at a listener, which
 * u->fd is the channel of.  It was fetched ahead of time, so the host takes
 * it for the application's.
 */
static bool waiting(struct ucma *u, uint64_t key, uint32_t nth,
		    uint32_t *number)
{
	struct cm_id *listener, *req;
	struct cm_event *e = NULL;
	uint32_t n = 0;

	cm_lock(&u->cm);
	u->c = ucma_chan(u, u->fd);
	listener = host_by_key(&u->cm, key);
	if (u->c && listener)
		e = cm_event_at(&u->cm, u->c->head);
	for (; e && n++ < CM_MAX_EVENT; e = cm_event_at(&u->cm, e->next)) {
		req = cm_deref(&u->cm, e->req);
		if (!req || !req->host ||
		    e->id != cm_id_ref(&u->cm, listener) || nth--)
			continue;
		*number = req->host - 1;
		break;
	}
	cm_unlock(&u->cm);
	return e;
}

int host_destroy_id(struct ucma *u)
{
	struct rdma_ucm_destroy_id cmd;
	struct host_id h;
	uint32_t n;

	ucma_get(u, &cmd);
	host_find(u, cmd.id, &h);
	if (h.there && u->out_len >= sizeof(struct rdma_ucm_destroy_id_resp)) {
		host_drop(u, &h);
		for (n = 0; waiting(u, h.key, n, &h.number); n++)
			host_destroy(h.fd, RDMA_USER_CM_CMD_DESTROY_ID,
				     h.number);
	}
	return ucma_run(u, RDMA_USER_CM_CMD_DESTROY_ID);
}

static int migrate(int to, int from, uint32_t number)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id cmd = {
		.response = (uintptr_t)&resp,
		.id = number,
		.fd = (uint32_t)from,
	};

	return host_send(to, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd),
			 sizeof(resp));
}

int host_migrate_id(struct ucma *u)
{
	struct rdma_ucm_migrate_id cmd;
	struct ucma from = *u;
	struct host_id h;
	int to = -1, ret;
	uint32_t n;

	ucma_get(u, &cmd);
	from.fd = (int)cmd.fd;
	host_find(&from, cmd.id, &h);
	if (!h.there || u->out_len < sizeof(struct rdma_ucm_migrate_resp))
		return ucma_run(u, RDMA_USER_CM_CMD_MIGRATE_ID);
	u->cm = from.cm;
	cm_lock(&u->cm);
	u->c = ucma_chan(u, u->fd);
	if (u->c)
		to = host_fd(&u->cm, u->c);
	cm_unlock(&u->cm);
	ret = to < 0 ? -ENODEV : migrate(to, h.fd, h.number);
	if (ret && h.chosen)
		return ret;
	if (ret)
		host_drop(u, &h);
	for (n = 0; !ret && waiting(&from, h.key, n, &h.number); n++)
		migrate(to, h.fd, h.number);
	return ucma_run(u, RDMA_USER_CM_CMD_MIGRATE_ID);
}

/* Of an id: the reference of the join, or 0. */
static uint32_t new_join(struct ucma *u, uint64_t key, uint64_t uid)
{
	struct cm_id *id;
	struct cm_mc *mc = NULL;
	uint32_t ref = 0;

	cm_lock(&u->cm);
	id = host_by_key(&u->cm, key);
	if (id)
		mc = cm_mc_new(&u->cm);
	if (mc) {
		mc->id = cm_id_ref(&u->cm, id);
		mc->uid = uid;
		ref = cm_mc_ref(&u->cm, mc);
	}
	cm_unlock(&u->cm);
	return ref;
}

/* What became of it at the host. */
static void end_join(struct ucma *u, uint32_t ref, bool ok, uint32_t number)
{
	struct cm_mc *mc;

	cm_lock(&u->cm);
	mc = cm_mc_at(&u->cm, ref);
	if (mc && ok)
		mc->host = number + 1;
	else if (mc)
		mc->used = 0;
	cm_unlock(&u->cm);
}

static_assert(offsetof(struct rdma_ucm_join_mcast, uid) ==
			      offsetof(struct rdma_ucm_join_ip_mcast, uid) &&
		      !offsetof(struct rdma_ucm_join_mcast, response) &&
		      !offsetof(struct rdma_ucm_join_ip_mcast, response),
	      "the same start");

int host_join(struct ucma *u, uint32_t cmd)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_join_mcast in;
	struct ucma sub = *u;
	uint64_t response;
	struct host_id h;
	uint32_t ref;
	int ret;

	host_find(u, host_number(u, cmd), &h);
	if (!h.there || !h.chosen)
		return ucma_run(u, cmd);
	if (u->out_len < sizeof(resp))
		return -ENOSPC;
	ucma_get(u, &in);
	response = in.response;
	ref = new_join(u, h.key, in.uid);
	if (!ref)
		return -ENOMEM;
	in.response = (uintptr_t)&resp;
	in.uid = ref;
	sub.in = (const char *)&in;
	if (sub.in_len > sizeof(in))
		sub.in_len = sizeof(in);
	ret = host_forward(&sub, cmd, &h);
	end_join(u, ref, !ret, resp.id);
	resp.id = ref - 1;
	return ret ? ret : ucma_put(response, &resp, sizeof(resp));
}

int host_leave(struct ucma *u)
{
	struct rdma_ucm_destroy_id cmd;
	struct host_id h = { 0 };
	uint32_t number = 0;
	struct cm_mc *mc;

	ucma_get(u, &cmd);
	if (!ucma_begin(&u->cm)) {
		cm_lock(&u->cm);
		mc = cmd.id < CM_MAX_MC ? cm_mc_at(&u->cm, cmd.id + 1) : NULL;
		if (mc && mc->host) {
			h.number = mc->id - 1;
			number = mc->host;
		}
		cm_unlock(&u->cm);
	}
	if (number && u->out_len >= sizeof(struct rdma_ucm_destroy_id_resp)) {
		host_find(u, h.number, &h);
		if (h.there)
			host_destroy(h.fd, RDMA_USER_CM_CMD_LEAVE_MCAST,
				     number - 1);
	}
	return ucma_run(u, RDMA_USER_CM_CMD_LEAVE_MCAST);
}
