// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How a connection ends: REJ, DREQ, DREP and the time wait of the IB
 * specification's 12.9.8, the destruction of ids, timers, and death.
 */
#include <errno.h>

#include "base/clock.h"
#include "cm.h"
#include "wire.h"

/* 4.096 us << 17: twice the packet life time that RoCE uses (16). */
#define TIMEWAIT_NS 537000000ull
/* 16 DREQs, 8.7 s each. */
#define DREQ_TIMEOUT_NS 139000000000ull

/* Channels of other processes that one tick tests for life ... */
#define LIVES_PER_TICK 32
#define LIFE_NS 100000000ull /* ... and the time between two ticks */

#define LAST_MESSAGES 3

#define HELD_NS                                                      \
	100000000ull /* the longest that a DISCONNECTED is held back \
		      */
#define HELD_LOOK_NS 2000000ull
#define PORT_LOOK_NS 20000000ull /* whether it is up; a kernel's is 4.3 s */

void cm_unlink(struct cm *cm, struct cm_id *id)
{
	struct cm_id *peer = cm_deref(cm, id->peer);

	id->peer.id = 0;
	if (peer && cm_deref(cm, peer->peer) == id)
		peer->peer.id = 0;
}

void cm_to_idle(struct cm *cm, struct cm_id *id)
{
	id->cm = CM_IDLE;
	id->deadline = 0;
	id->flags &= ~(uint32_t)(CM_F_PARKED | CM_F_HELD | CM_F_UNSENT);
	cm_unlink(cm, id);
}

static void conn_timewait(struct cm *cm, struct cm_id *id)
{
	id->cm = CM_TIMEWAIT;
	id->deadline = clock_now() + TIMEWAIT_NS;
	cm->watch = true;
	cm_unlink(cm, id);
}

void cm_got_rej(struct cm *cm, struct cm_id *id, int reason, const void *data,
		uint8_t len)
{
	struct cm_event *e;

	switch (id->cm) {
	case CM_REQ_SENT:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
		if (reason == CM_REJ_STALE)
			conn_timewait(cm, id);
		else
			cm_to_idle(cm, id);
		break;
	case CM_REP_RCVD:
	case CM_ESTABLISHED:
	case CM_DREQ_SENT:
		conn_timewait(cm, id);
		break;
	default:
		return;
	}
	if (id->cma != CMA_CONNECT)
		return;
	e = cm_event_new(cm, id, CM_EV_REJECTED, reason);
	if (!e)
		return;
	cm_fill_private(e, data, len, CM_REJ_PRIVATE);
	cm_event_send(cm, e);
}

static void conn_disconnected(struct cm *cm, struct cm_id *id, int status)
{
	if (id->cma != CMA_CONNECT)
		return;
	id->cma = CMA_DISCONNECT;
	cm_event_post(cm, id, CM_EV_DISCONNECTED, status);
}

/* Its event comes now, though there is a receive that was not polled. */
static bool conn_overtakes(struct cm *cm, struct cm_id *id)
{
	const struct cm_chan *c = cm_chan_at(cm, id->chan);

	if (!cm->overtakes || !c || !c->late || !cm->overtakes())
		return false;
	cm->hurries = true;
	conn_disconnected(cm, id, 0);
	cm->hurries = false;
	return true;
}

void cm_got_dreq(struct cm *cm, struct cm_id *id)
{
	if (id->cm != CM_REP_SENT && id->cm != CM_DREQ_SENT &&
	    id->cm != CM_ESTABLISHED)
		return;
	id->cm = CM_DREQ_RCVD;
	id->deadline = 0;
	if (id->cma == CMA_CONNECT && cm_recv_mark(cm, id)) {
		if (conn_overtakes(cm, id))
			return;
		id->flags |= CM_F_HELD;
		id->deadline = clock_now() + HELD_NS;
		cm->watch = true;
		event_count_ring(&cm->t->timers);
		return;
	}
	conn_disconnected(cm, id, 0);
}

/* There is nothing to hold it back for any more. */
static void conn_release(struct cm *cm, struct cm_id *id)
{
	if (!(id->flags & CM_F_HELD))
		return;
	id->flags &= ~(uint32_t)CM_F_HELD;
	id->deadline = 0;
	conn_disconnected(cm, id, 0);
}

void cm_got_drep(struct cm *cm, struct cm_id *id)
{
	if (id->cm != CM_DREQ_SENT)
		return;
	conn_timewait(cm, id);
	conn_disconnected(cm, id, 0);
}

/* Nobody knows of the connection that id wants to end. */
static void conn_disown(struct cm *cm, struct cm_id *id)
{
	cm_sent_drep_unknown(cm, id);
	cm_got_drep(cm, id);
}

int cm_disconnect(struct cm *cm, struct cm_id *id)
{
	struct cm_id *peer = cm_deref(cm, id->peer);

	if (!(id->flags & CM_F_CM))
		return -EINVAL;
	switch (id->cm) {
	case CM_ESTABLISHED:
		cm_sent_dreq(cm, id);
		id->cm = CM_DREQ_SENT;
		id->deadline = clock_now() + DREQ_TIMEOUT_NS;
		cm->watch = true;
		if (cm_is_remote(id))
			cm_wire_wait(cm, id);
		else if (peer)
			cm_got_dreq(cm, peer);
		else
			conn_disown(cm, id);
		break;
	case CM_DREQ_RCVD:
		cm_sent_drep(cm, id);
		if (cm_is_remote(id))
			id->flags |= CM_F_DREP;
		conn_release(cm, id);
		conn_timewait(cm, id);
		if (peer)
			cm_got_drep(cm, peer);
		break;
	default:
		break; /* there is nothing to end, which is no error */
	}
	return 0;
}

int cm_reject(struct cm *cm, struct cm_id *id, uint8_t reason, const void *data,
	      uint8_t len)
{
	struct cm_id *peer = cm_deref(cm, id->peer);

	if (!(id->flags & CM_F_CM) ||
	    len > (id->cm == CM_SIDR_RCVD ? CM_SIDR_REP_PRIVATE :
					    CM_REJ_PRIVATE))
		return -EINVAL;
	switch (id->cm) {
	case CM_SIDR_RCVD:
		cm_sent_sidr_rep(cm, id, CM_SIDR_REJECT, data, len);
		cm_to_idle(cm, id);
		if (peer)
			cm_got_sidr_reject(cm, peer, CM_SIDR_REJECT, data, len);
		return 0;
	case CM_REQ_SENT:
	case CM_REQ_RCVD:
	case CM_REP_RCVD:
		cm_sent_rej(cm, id, reason, data, len);
		cm_to_idle(cm, id);
		break;
	case CM_REP_SENT:
		cm_sent_rej(cm, id, reason, data, len);
		conn_timewait(cm, id);
		break;
	default:
		return -EINVAL;
	}
	if (peer)
		cm_got_rej(cm, peer, reason, data, len);
	return 0;
}

void cm_refuse(struct cm *cm, struct cm_id *client, bool served)
{
	const int status = served ? CM_SIDR_REJECT : CM_SIDR_UNSUPPORTED;
	const int reason = served ? CM_REJ_CONSUMER : CM_REJ_INVALID_SERVICE;

	cm_sent_refusal(cm, client,
			client->cm == CM_SIDR_SENT ? status : reason);
	if (client->cm == CM_SIDR_SENT)
		cm_got_sidr_reject(cm, client, status, NULL, 0);
	else
		cm_got_rej(cm, client, reason, NULL, 0);
}

void cm_lost_rejected(struct cm *cm, struct cm_id *id, int reason)
{
	cm_sent_refusal(cm, id,
			id->cm == CM_SIDR_SENT ? CM_SIDR_REJECT : reason);
	if (id->cm == CM_SIDR_SENT)
		cm_got_sidr_reject(cm, id, CM_SIDR_REJECT, NULL, 0);
	else
		cm_got_rej(cm, id, reason, NULL, 0);
}

void cm_lost_unreachable(struct cm *cm, struct cm_id *id, int status)
{
	cm_to_idle(cm, id);
	if (id->cma == CMA_CONNECT)
		cm_event_post(cm, id, CM_EV_UNREACHABLE, status);
}

/* The message that ends whatever an id is about when it is destroyed. */
static void conn_send_end(struct cm *cm, const struct cm_id *id)
{
	switch (id->cm) {
	case CM_REQ_SENT:
		if (!(id->flags & CM_F_UNSENT))
			cm_sent_rej(cm, id, CM_REJ_TIMEOUT, NULL, 0);
		break;
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		cm_sent_rej(cm, id, CM_REJ_CONSUMER, NULL, 0);
		break;
	case CM_ESTABLISHED:
		if (id->qp_type != CM_QPT_XRC_RECV)
			cm_sent_dreq(cm, id);
		break;
	case CM_DREQ_SENT:
		if (cm_is_remote(id))
			cm_sent_dreq(cm, id);
		break;
	case CM_DREQ_RCVD:
		cm_sent_drep(cm, id);
		break;
	case CM_TIMEWAIT:
		if (id->flags & CM_F_DREP)
			cm_sent_drep(cm, id);
		break;
	case CM_SIDR_RCVD:
		cm_sent_sidr_rep(cm, id, CM_SIDR_REJECT, NULL, 0);
		break;
	default:
		break;
	}
}

/*
 * Nobody will send it again when the id is gone, and perhaps nobody of this
 * host is left to answer who asks again: a kernel keeps what it knows for that.
 */
static void conn_send_last(struct cm *cm, const struct cm_id *id)
{
	const unsigned int n = cm_is_remote(id) ? LAST_MESSAGES : 1;
	unsigned int i;

	for (i = 0; i < n; i++)
		conn_send_end(cm, id);
}

/* And what it does at the other end. */
static void conn_notify_peer(struct cm *cm, struct cm_id *id)
{
	struct cm_id *peer = cm_deref(cm, id->peer);

	if (!peer)
		return;
	switch (id->cm) {
	case CM_REQ_SENT:
		cm_got_rej(cm, peer, CM_REJ_TIMEOUT, NULL, 0);
		break;
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		cm_got_rej(cm, peer, CM_REJ_CONSUMER, NULL, 0);
		break;
	case CM_ESTABLISHED:
		if (id->qp_type != CM_QPT_XRC_RECV) /* others may use it */
			cm_got_dreq(cm, peer);
		break;
	case CM_DREQ_RCVD:
		cm_got_drep(cm, peer);
		break;
	case CM_SIDR_RCVD:
		cm_got_sidr_reject(cm, peer, CM_SIDR_REJECT, NULL, 0);
		break;
	default:
		break;
	}
}

void cm_id_destroy(struct cm *cm, struct cm_id *id, int fd)
{
	const bool listener = id->cma == CMA_LISTEN;
	const uint32_t ref = cm_id_ref(cm, id);
	struct cm_mc *mc;

	id->cma = CMA_IDLE;
	cm_wire_ended(cm, id);
	conn_send_last(cm, id);
	conn_notify_peer(cm, id);
	cm_to_idle(cm, id);
	if (listener)
		cm_unpark(cm, id);
	cm_event_purge(cm, id, fd);
	cm_for_each_mc(cm, mc)
		if (mc->id == ref)
			cm_mc_free(cm, mc);
	cm_id_free(cm, id);
}

/* ------------------------------------------------------------ recovery */

/* One end knows of a connection, and the other one not. */
static void conn_recover_end(struct cm *cm, struct cm_id *id)
{
	if (id->flags & (CM_F_PARKED | CM_F_UNSENT | CM_F_WIRE) ||
	    cm_deref(cm, id->peer))
		return;
	switch (id->cm) {
	case CM_REQ_SENT:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		cm_got_rej(cm, id, CM_REJ_CONSUMER, NULL, 0);
		break;
	case CM_SIDR_SENT:
		cm_got_sidr_reject(cm, id, CM_SIDR_REJECT, NULL, 0);
		break;
	case CM_ESTABLISHED:
		cm_got_dreq(cm, id);
		break;
	case CM_DREQ_SENT:
		cm_got_drep(cm, id);
		break;
	default:
		break;
	}
}

void cm_conn_recover(struct cm *cm)
{
	struct cm_event *e;
	struct cm_id *id;

	cm_for_each_id(cm, id)
		id->backlog = id->backlog_max;
	cm_for_each_event(cm, e) {
		id = e->req.id ? cm_id_at(cm, e->id) : NULL;
		if (id && id->backlog)
			id->backlog--;
	}
	cm_for_each_id(cm, id) {
		conn_recover_end(cm, id);
		if (id->cma == CMA_LISTEN)
			cm_unpark(cm, id);
	}
}

/* ---------------------------------------------------------------- time */

static void id_expire(struct cm *cm, struct cm_id *id)
{
	const bool parked = id->flags & CM_F_PARKED;

	if (cm_is_remote(id) && cm_wire_again(cm, id))
		return;
	id->deadline = 0;
	id->flags &= ~(uint32_t)CM_F_PARKED;
	if (parked && !id->listener.id) {
		cm_refuse(cm, id, cm_port_served(cm, id));
		return;
	}
	switch (id->cm) {
	case CM_REQ_SENT:
	case CM_SIDR_SENT:
		cm_lost_unreachable(cm, id, -ETIMEDOUT);
		break;
	case CM_REP_SENT:
		cm_sent_rej(cm, id, CM_REJ_TIMEOUT, NULL, 0);
		cm_lost_unreachable(cm, id, -ETIMEDOUT);
		break;
	case CM_DREQ_SENT:
		conn_timewait(cm, id);
		conn_disconnected(cm, id, -ETIMEDOUT);
		break;
	case CM_DREQ_RCVD:
		conn_release(cm, id);
		break;
	case CM_TIMEWAIT:
		cm_to_idle(cm, id);
		if (id->cma == CMA_DISCONNECT)
			cm_event_post(cm, id, CM_EV_TIMEWAIT_EXIT, 0);
		break;
	default:
		break;
	}
}

/* Nobody watches over its process: whoever comes by may end the waiting. */
static bool id_is_overdue(const struct cm_id *id, uint64_t now)
{
	return id->flags & CM_F_HELD && id->deadline <= now;
}

static void id_look(struct cm *cm, struct cm_id *id, uint64_t now)
{
	if (id->cma == CMA_ADDR_QUERY)
		cm_resolve_look(cm, id, now);
	else if (id->deadline && id->deadline <= now)
		id_expire(cm, id);
	else if (id->flags & CM_F_HELD && !cm_recv_waits(cm, id))
		conn_release(cm, id);
	else if (id->flags & CM_F_UNSENT && !cm_device_is_down(cm))
		cm_send_unsent(cm, id);
}

/* Until its deadline, or until it is to be looked at before that. */
static uint64_t id_waits(const struct cm_id *id, uint64_t now)
{
	const uint64_t left = id->deadline > now ? id->deadline - now : 0;

	if (id->cma == CMA_ADDR_QUERY)
		return id->look_at > now ? cm_min(left, id->look_at - now) : 1;
	if (id->flags & CM_F_UNSENT)
		return cm_min(left, PORT_LOOK_NS);
	return id->flags & CM_F_HELD ? cm_min(left, HELD_LOOK_NS) : left;
}

/* What another host says may need somebody who looks, too. */
static uint64_t id_sleep(const struct cm_id *id, const struct cm_chan *far,
			 uint64_t now)
{
	const uint64_t sleep = id->deadline ? id_waits(id, now) : UINT64_MAX;

	if (far || id->flags & CM_F_WATCHES ||
	    (cm_is_remote(id) && id->cm != CM_IDLE))
		return cm_min(sleep, LIFE_NS);
	return sleep;
}

/* The channel of the other end, if that is another process. */
static struct cm_chan *peer_chan_elsewhere(struct cm *cm,
					   const struct cm_id *id, int32_t pid)
{
	struct cm_id *other =
		cm_deref(cm, id->flags & CM_F_PARKED ? id->listener : id->peer);
	struct cm_chan *c = other ? cm_chan_at(cm, other->chan) : NULL;

	return c && c->pid != pid ? c : NULL;
}

/*
 * Whose life is to be looked at: that of the other end of an own id; of a
 * connection with another host, which hears no more of it, that of this end.
 */
static struct cm_chan *chan_to_watch(struct cm *cm, const struct cm_id *id,
				     struct cm_chan *own, int32_t pid)
{
	if (own->pid == pid)
		return peer_chan_elsewhere(cm, id, pid);
	return cm_is_remote(id) && id->cm != CM_IDLE ? own : NULL;
}

uint64_t cm_tick(struct cm *cm, int32_t pid, uint32_t *next)
{
	const uint32_t end = cm_ids(cm);
	const uint64_t now = clock_now();
	uint32_t i, n, budget = LIVES_PER_TICK;
	struct cm_chan *own, *far;
	uint64_t sleep = UINT64_MAX;
	struct cm_id *id;

	/* where the last one stopped looking */
	if (*next >= end)
		*next = 0;
	for (n = 0, i = *next; n < end; n++, i++) {
		id = cm_id_at(cm, i % end + 1);
		own = id ? cm_chan_at(cm, id->chan) : NULL;
		if (!own)
			continue;
		if (own->pid == pid || id_is_overdue(id, now))
			id_look(cm, id, now);
		far = chan_to_watch(cm, id, own, pid);
		if (own->pid == pid)
			sleep = cm_min(sleep, id_sleep(id, far, now));
		if (!far || !budget)
			continue;
		*next = i % end + 1;
		/* a process that died took all its channels along */
		if (!cm_chan_alive(cm, far))
			budget = UINT32_MAX;
		else
			budget--;
	}
	cm_event_come(cm);
	if (cm->t->late_at)
		sleep = cm_min(sleep,
			       cm->t->late_at > now ? cm->t->late_at - now : 1);
	if (cm->late) /* others count on this thread */
		sleep = cm_min(sleep, LIFE_NS);
	cm_settle(cm);
	return sleep == UINT64_MAX ? 0 : cm_min(sleep, LIFE_NS);
}
