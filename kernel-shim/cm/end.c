// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connection release: REJ, DREQ, DREP and TIMEWAIT (IB specification,
 * 12.9.8); destruction of ids; recovery; timers; detection of dead peers.
 *
 * Disconnection:
 *
 *	active end			passive end
 *	CM_DREQ_SENT	DREQ ->		CM_DREQ_RCVD, event DISCONNECTED
 *	CM_TIMEWAIT	  <- DREP	CM_TIMEWAIT
 *	event DISCONNECTED
 *	CM_IDLE after CM_TIMEWAIT_NS, event TIMEWAIT_EXIT, at both ends
 *
 * CM_F_HELD: DISCONNECTED of the passive end is withheld while receives that
 * precede the DREQ were not polled (recv.c), for at most HELD_NS.
 *
 * There is no kernel to run timers or to notice the exit of a process.  The
 * service thread of each process that has such ids (preload/ucma/watch.c)
 * calls cm_tick().
 */
#include <errno.h>

#include "base/clock.h"
#include "cm.h"
#include "wire.h"

/* 16 transmissions of a DREQ, 8.7 s each */
#define DREQ_TIMEOUT_NS 139000000000ull

/* number of other processes' channels that one tick checks */
#define LIVENESS_PER_TICK 32
#define LIVENESS_NS 100000000ull /* longest time between two ticks */

/* copies of the last message to another host: see conn_send_last() */
#define LAST_MESSAGES 3

/* longest time for which a DISCONNECTED is withheld (CM_F_HELD) */
#define HELD_NS 100000000ull
#define HELD_CHECK_NS 2000000ull /* interval of checks for CM_F_HELD */
/* for CM_F_UNSENT: interval of checks of the port; 4.3 s in the kernel */
#define PORT_CHECK_NS 20000000ull

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
	id->deadline = clock_now() + CM_TIMEWAIT_NS;
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

/*
 * Adversary: send DISCONNECTED now, undelayed, although a receive was not
 * polled.  Return whether it did.
 */
static bool conn_disconnect_early(struct cm *cm, struct cm_id *id)
{
	const struct cm_chan *c = cm_chan_at(cm, id->chan);

	if (!cm->disconnect_early || !c || !c->delays_events ||
	    !cm->disconnect_early())
		return false;
	cm->undelayed = true;
	conn_disconnected(cm, id, 0);
	cm->undelayed = false;
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
		if (conn_disconnect_early(cm, id))
			return;
		id->flags |= CM_F_HELD;
		id->deadline = clock_now() + HELD_NS;
		cm->watch = true;
		event_count_ring(&cm->t->timers);
		return;
	}
	conn_disconnected(cm, id, 0);
}

/* Send the DISCONNECTED event that was withheld. */
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

/*
 * Complete a disconnection without a peer: the id of the peer does not exist
 * any more.
 */
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
		break; /* not connected: no error */
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

void cm_refuse(struct cm *cm, struct cm_id *client, bool has_listener)
{
	const int status = has_listener ? CM_SIDR_REJECT : CM_SIDR_UNSUPPORTED;
	const int reason = has_listener ? CM_REJ_CONSUMER :
					  CM_REJ_INVALID_SERVICE;

	cm_sent_refusal(cm, client,
			client->cm == CM_SIDR_SENT ? status : reason);
	if (client->cm == CM_SIDR_SENT)
		cm_got_sidr_reject(cm, client, status, NULL, 0);
	else
		cm_got_rej(cm, client, reason, NULL, 0);
}

void cm_fail_rejected(struct cm *cm, struct cm_id *id, int reason)
{
	cm_sent_refusal(cm, id,
			id->cm == CM_SIDR_SENT ? CM_SIDR_REJECT : reason);
	if (id->cm == CM_SIDR_SENT)
		cm_got_sidr_reject(cm, id, CM_SIDR_REJECT, NULL, 0);
	else
		cm_got_rej(cm, id, reason, NULL, 0);
}

void cm_fail_unreachable(struct cm *cm, struct cm_id *id, int status)
{
	cm_to_idle(cm, id);
	if (id->cma == CMA_CONNECT)
		cm_event_post(cm, id, CM_EV_UNREACHABLE, status);
}

/* Send the message that ends the connection of an id being destroyed. */
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
 * Send the last message of an id, to another host LAST_MESSAGES times.  Unless
 * it is a DREQ (ended.c), it cannot be retransmitted after the id is freed, and
 * possibly no process is left to answer a retransmission of the peer.  The
 * kernel keeps the state of the connection for that purpose.
 */
static void conn_send_last(struct cm *cm, const struct cm_id *id)
{
	const unsigned int n = cm_is_remote(id) ? LAST_MESSAGES : 1;
	unsigned int i;

	for (i = 0; i < n; i++)
		conn_send_end(cm, id);
}

/* Deliver that message to a peer in this fabric. */
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
		/* other initiators may use an XRC target QP */
		if (id->qp_type != CM_QPT_XRC_RECV)
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
	cm_ended_add(cm, id);
	conn_send_last(cm, id);
	conn_notify_peer(cm, id);
	cm_to_idle(cm, id);
	if (listener)
		cm_unpark(cm, id);
	cm_event_purge(cm, id, fd);
	cm_for_each_mc(cm, mc)
		if (mc->id == ref)
			cm_mc_leave(cm, mc);
	cm_id_free(cm, id);
}

/* ------------------------------------------------------------ recovery */

/*
 * End a connection whose peer does not exist.  Ids that wait for a listener
 * or for the port, and ids with a peer on another host, have no peer here.
 */
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

/* -------------------------------------------------------------- timers */

static void id_expire(struct cm *cm, struct cm_id *id)
{
	const bool parked = id->flags & CM_F_PARKED;

	if (cm_is_remote(id) && cm_wire_retransmit(cm, id))
		return;
	id->deadline = 0;
	id->flags &= ~(uint32_t)CM_F_PARKED;
	if (parked && !id->listener.id) {
		cm_refuse(cm, id, cm_port_has_listener(cm, id));
		return;
	}
	switch (id->cm) {
	case CM_REQ_SENT:
	case CM_SIDR_SENT:
		cm_fail_unreachable(cm, id, -ETIMEDOUT);
		break;
	case CM_REP_SENT:
		cm_sent_rej(cm, id, CM_REJ_TIMEOUT, NULL, 0);
		cm_fail_unreachable(cm, id, -ETIMEDOUT);
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

/*
 * Return whether a withheld DISCONNECTED is overdue.  Any process may then
 * send it, since the id's process may have no service thread.
 */
static bool id_is_overdue(const struct cm_id *id, uint64_t now)
{
	return id->flags & CM_F_HELD && id->deadline <= now;
}

static void id_check(struct cm *cm, struct cm_id *id, uint64_t now)
{
	if (id->cma == CMA_ADDR_QUERY)
		cm_resolve_check(cm, id, now);
	else if (id->deadline && id->deadline <= now)
		id_expire(cm, id);
	else if (id->flags & CM_F_HELD && !cm_recv_waits(cm, id))
		conn_release(cm, id);
	else if (id->flags & CM_F_UNSENT && !cm_device_is_down(cm, id))
		cm_send_unsent(cm, id);
}

/*
 * Return the time in ns until the deadline of @id, or until its next check if
 * that is earlier.
 */
static uint64_t id_waits(const struct cm_id *id, uint64_t now)
{
	const uint64_t left = id->deadline > now ? id->deadline - now : 0;

	if (id->cma == CMA_ADDR_QUERY)
		return id->next_check > now ?
			       cm_min(left, id->next_check - now) :
			       1;
	if (id->flags & CM_F_UNSENT)
		return cm_min(left, PORT_CHECK_NS);
	return id->flags & CM_F_HELD ? cm_min(left, HELD_CHECK_NS) : left;
}

/*
 * Return the time in ns until @id needs a tick.  @far: the channel to check,
 * if there is one.  Messages from other hosts are handled in the process that
 * owns the socket, which may start a timer of @id without waking this
 * process.  Therefore ids with a peer on another host, and listeners for
 * other hosts, are polled.
 */
static uint64_t id_sleep(const struct cm_id *id, const struct cm_chan *far,
			 uint64_t now)
{
	const uint64_t sleep = id->deadline ? id_waits(id, now) : UINT64_MAX;

	if (far || id->flags & CM_F_WATCHES ||
	    (cm_is_remote(id) && id->cm != CM_IDLE))
		return cm_min(sleep, LIVENESS_NS);
	return sleep;
}

/*
 * Return the channel of the peer, or of the listener at which @id is parked,
 * if it belongs to another process than @pid; else NULL.
 */
static struct cm_chan *
peer_chan_of_other_process(struct cm *cm, const struct cm_id *id, int32_t pid)
{
	struct cm_id *other =
		cm_deref(cm, id->flags & CM_F_PARKED ? id->listener : id->peer);
	struct cm_chan *c = other ? cm_chan_at(cm, other->chan) : NULL;

	return c && c->pid != pid ? c : NULL;
}

/*
 * Return the channel that a tick of @pid checks on behalf of @id, or NULL.
 * For an id of @pid it is the channel of the peer.  For another process's id
 * that is connected with another host it is that id's own channel, since the
 * remote peer cannot detect the exit of the process.
 */
static struct cm_chan *chan_to_watch(struct cm *cm, const struct cm_id *id,
				     struct cm_chan *own, int32_t pid)
{
	if (own->pid == pid)
		return peer_chan_of_other_process(cm, id, pid);
	return cm_is_remote(id) && id->cm != CM_IDLE ? own : NULL;
}

uint64_t cm_tick(struct cm *cm, int32_t pid, uint32_t *next)
{
	const uint32_t end = cm_ids(cm);
	const uint64_t now = clock_now();
	uint32_t i, n, budget = LIVENESS_PER_TICK;
	struct cm_chan *own, *far;
	uint64_t sleep = UINT64_MAX;
	struct cm_id *id;

	/* continue where the last tick stopped checking channels */
	if (*next >= end)
		*next = 0;
	for (n = 0, i = *next; n < end; n++, i++) {
		id = cm_id_at(cm, i % end + 1);
		own = id ? cm_chan_at(cm, id->chan) : NULL;
		if (!own)
			continue;
		if (own->pid == pid || id_is_overdue(id, now))
			id_check(cm, id, now);
		far = chan_to_watch(cm, id, own, pid);
		if (own->pid == pid)
			sleep = cm_min(sleep, id_sleep(id, far, now));
		if (!far || !budget)
			continue;
		*next = i % end + 1;
		/*
		 * A process that exits leaves all its channels dead: if one
		 * is dead, check the others without a limit.
		 */
		if (!cm_chan_alive(cm, far))
			budget = UINT32_MAX;
		else
			budget--;
	}
	sleep = cm_min(sleep, cm_ended_tick(cm, pid, now));
	cm_event_release_due(cm);
	if (cm->t->due_at)
		sleep = cm_min(sleep,
			       cm->t->due_at > now ? cm->t->due_at - now : 1);
	if (cm->delay_of) /* other processes may delay events for this one */
		sleep = cm_min(sleep, LIVENESS_NS);
	cm_settle(cm);
	return sleep == UINT64_MAX ? 0 : cm_min(sleep, LIVENESS_NS);
}
