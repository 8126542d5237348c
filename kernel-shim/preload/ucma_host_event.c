// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The host's events, in the terms of our tables. */
#include "ucma_host.h"

static bool is_multicast(uint32_t event)
{
	return event == CM_EV_MULTICAST_JOIN || event == CM_EV_MULTICAST_ERROR;
}

static void send_as(struct cm *cm, struct cm_event *e,
		    const struct rdma_ucm_event_resp *r, uint64_t uid,
		    uint32_t number)
{
	e->resp = *r;
	e->resp.uid = uid;
	e->resp.id = number;
	cm_event_send(cm, e);
}

static void post_multicast(struct cm *cm, const struct rdma_ucm_event_resp *r)
{
	struct cm_mc *mc = cm_mc_at(cm, (uint32_t)r->uid);
	struct cm_id *id = mc ? cm_id_at(cm, mc->id) : NULL;
	struct cm_event *e;

	/* its number is not known while JOIN is on its way back */
	if (!id || (mc->host && mc->host != r->id + 1))
		return;
	e = cm_event_new(cm, id, r->event, 0);
	if (!e)
		return;
	e->mc = cm_mc_ref(cm, mc);
	send_as(cm, e, r, mc->uid, e->mc - 1);
}

/* A request brings an id with it, which has no number here yet. */
static bool post_request(struct cm *cm, struct cm_id *listener,
			 const struct rdma_ucm_event_resp *r)
{
	struct cm_chan *c = cm_chan_at(cm, listener->chan);
	struct cm_id *id = c ? cm_id_new(cm, c) : NULL;
	struct cm_event *e;

	if (!id)
		return false;
	id->ps = listener->ps;
	id->qp_type = listener->qp_type;
	id->flags = CM_F_HOST;
	id->host = r->id + 1;
	e = cm_event_new(cm, listener, r->event, 0);
	if (!e) {
		cm_id_free(cm, id);
		return false;
	}
	e->req = cm_ref_to(cm, id);
	send_as(cm, e, r, listener->uid, cm_id_ref(cm, id) - 1);
	return true;
}

static void post(struct cm *cm, int fd, const struct rdma_ucm_event_resp *r)
{
	struct cm_id *id;
	struct cm_event *e;

	if (is_multicast(r->event)) {
		post_multicast(cm, r);
		return;
	}
	id = host_by_key(cm, r->uid);
	if (r->event == CM_EV_CONNECT_REQUEST) {
		if (!id || !post_request(cm, id, r))
			host_destroy(fd, RDMA_USER_CM_CMD_DESTROY_ID, r->id);
		return;
	}
	e = id ? cm_event_new(cm, id, r->event, 0) : NULL;
	if (!e)
		return;
	/* another address may be tried, and may be ours */
	if (r->event == CM_EV_ADDR_ERROR)
		id->flags &= ~(uint32_t)CM_F_HOST;
	send_as(cm, e, r, id->uid, cm_id_ref(cm, id) - 1);
}

int host_fetch_one(struct cm *cm, int fd)
{
	struct rdma_ucm_event_resp resp;
	struct rdma_ucm_get_event cmd = { .response = (uintptr_t)&resp };
	int ret;

	memset(&resp, 0, sizeof(resp));
	ret = host_send(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd),
			sizeof(resp));
	if (ret)
		return ret == -EAGAIN || ret == -EINTR ? 0 : ret;
	post(cm, fd, &resp);
	return 1;
}

void ucma_host_fetch(struct ucma *u)
{
	int fd, n;

	if (cm_event_at(&u->cm, u->c->head))
		return;
	fd = host_fd(&u->cm, u->c);
	for (n = 0; fd >= 0 && n < HOST_EVENTS_MAX; n++)
		if (host_fetch_one(&u->cm, fd) <= 0)
			return;
}
