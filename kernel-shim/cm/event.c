// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events: a queue per channel, and the bytes in its FIFO that tell pollers.
 *
 * Within a command the number of bytes may be wrong; when it is settled
 * (cm_settle) there is a byte if and only if there is an event.  Each of the
 * first BYTES_MAX events brings one of its own, so that edge-triggered pollers
 * are woken by each.  Bytes, not events, may get lost when a process is
 * killed: the next event that is taken brings them in order.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cm.h"

/*
 * An event may come late, if whoever raises it wants that (cm.late) and the
 * channel's process has a thread that looks after it.  It has its place in the
 * queue, and is not there until its time has come.  The kernel keeps the events
 * of an id in order, and so does this: none is due before an earlier one of the
 * same id.  Those of different ids overtake each other.  A new id's first event
 * is its request.
 */

#define BYTES_MAX 64 /* far less than the smallest pipe holds */

struct cm_event *cm_event_new(struct cm *cm, struct cm_id *id, uint32_t event,
			      int status)
{
	struct cm_event *e;

	/* before it is accepted a new passive id hears only its own process */
	if (!id->uid && event != CM_EV_CONNECT_REQUEST && event < CM_EV_USER)
		return NULL;
	e = cm_event_alloc(cm);
	if (!e)
		return NULL;
	e->id = cm_id_ref(cm, id);
	e->chan = id->chan;
	e->resp.uid = id->uid;
	e->resp.id = e->id - 1;
	e->resp.event = event;
	e->resp.status = (uint32_t)status;
	return e;
}

static void event_append(struct cm *cm, struct cm_chan *c, struct cm_event *e)
{
	struct cm_event *last = cm_event_at(cm, c->tail);
	uint32_t ref = cm_event_ref(cm, e);

	e->chan = cm_chan_ref(cm, c);
	e->order = ++cm->t->order;
	e->next = 0;
	e->used = 1;
	if (last)
		last->next = ref;
	else
		c->head = ref;
	c->tail = ref;
	c->events++;
}

/* One byte.  EPIPE without the signal, which would be the application's. */
static bool chan_put_byte(int fd)
{
	const struct timespec zero = { 0 };
	sigset_t pipe, old, pending;
	bool ok;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	ok = write(fd, "", 1) == 1 || errno == EAGAIN;
	if (!ok && errno == EPIPE && !sigismember(&old, SIGPIPE) &&
	    !sigpending(&pending) && sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe, NULL, &zero);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ok;
}

/* No descriptor is left to write a byte with: cm_settle tries again. */
static void chan_set_due(struct cm *cm, struct cm_chan *c)
{
	if (c->state == CM_CHAN_LIVE)
		c->due = cm->t->due = 1;
}

static uint32_t event_owner(const struct cm_event *e)
{
	return e->req.id ? e->req.id : e->id;
}

/* When the events of e's id that wait in c are there. */
static uint64_t event_last_due(struct cm *cm, struct cm_chan *c,
			       const struct cm_event *e)
{
	struct cm_event *at = cm_event_at(cm, c->head);
	uint64_t due = 0;
	uint32_t n = 0;

	for (; at && n++ < CM_MAX_EVENT; at = cm_event_at(cm, at->next))
		if (event_owner(at) == event_owner(e) && at->due > due)
			due = at->due;
	return due;
}

/* False: it is there at once. */
static bool event_delay(struct cm *cm, struct cm_chan *c, struct cm_event *e)
{
	uint64_t *at = &cm->t->late_at, after = 0;
	uint64_t late = 0;

	if (cm->late && c->late && !cm->hurries)
		late = cm->late(e->resp.event);
	e->due = late ? clock_now() + late : 0;
	if (*at)
		after = event_last_due(cm, c, e);
	if (after > e->due)
		e->due = after;
	if (!e->due)
		return false;
	if (!*at || e->due < *at)
		*at = e->due;
	cm->watch = true;
	event_count_ring(&cm->t->timers);
	return true;
}

/* What it tells of has happened. */
static void event_arrives(struct cm *cm, const struct cm_event *e)
{
	struct cm_id *id = cm_id_at(cm, e->id);

	if (id && e->resp.event == CM_EV_ROUTE_RESOLVED &&
	    id->cma == CMA_ROUTE_QUERY)
		id->cma = CMA_ROUTE_RESOLVED;
}

void cm_event_send(struct cm *cm, struct cm_event *e)
{
	struct cm_chan *c = cm_chan_at(cm, e->chan);
	int fd = c ? cm_chan_writer(cm, c) : -1;

	if (!c || c->state != CM_CHAN_LIVE)
		return;
	if (cm->cause.thread && c->pid == getpid()) {
		e->cause = cm->cause;
		cm->raised = true;
	}
	if (event_delay(cm, c, e)) {
		event_append(cm, c, e);
		if (fd >= 0)
			close(fd);
		return;
	}
	event_append(cm, c, e);
	event_arrives(cm, e);
	if (fd >= 0 && c->events <= BYTES_MAX && !chan_put_byte(fd))
		cm_chan_set_dying(cm, c);
	if (fd < 0)
		chan_set_due(cm, c);
	else
		close(fd);
	event_count_ring(&c->posts);
}

int cm_event_post(struct cm *cm, struct cm_id *id, uint32_t event, int status)
{
	struct cm_event *e = cm_event_new(cm, id, event, status);

	if (!e)
		return id->uid ? -ENOMEM : 0;
	cm_event_send(cm, e);
	return 0;
}

int cm_event_write(struct cm *cm, struct cm_id *id, uint32_t event, int status,
		   uint64_t arg)
{
	const struct cm_chan *c = cm_chan_at(cm, id->chan);
	struct cm_event *e;

	/* the table is everybody's, and no other event may be lost */
	if (c && c->events >= CM_MAX_WRITTEN)
		return -ENOMEM;
	e = cm_event_new(cm, id, event, status);
	if (!e)
		return -ENOMEM;
	memcpy(&e->resp.param, &arg, sizeof(arg));
	cm_event_send(cm, e);
	return 0;
}

/* Wake pollers; a byte too many goes with the next event. */
static void chan_wake(struct cm *cm, struct cm_chan *c)
{
	int fd = cm_chan_writer(cm, c);

	if (fd < 0) {
		chan_set_due(cm, c);
		return;
	}
	chan_put_byte(fd);
	close(fd);
}

/* Those that are there. */
static uint32_t chan_events(struct cm *cm, struct cm_chan *c)
{
	struct cm_event *e = cm_event_at(cm, c->head);
	uint32_t n = 0, all = 0;

	if (!cm->t->late_at)
		return c->events;
	for (; e && all++ < CM_MAX_EVENT; e = cm_event_at(cm, e->next))
		n += !e->due;
	return n;
}

/* As many bytes as there are events, or at least one. */
static void chan_match_bytes(struct cm *cm, struct cm_chan *c, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const uint32_t want = cm_min(chan_events(cm, c), BYTES_MAX);
	char buf[BYTES_MAX];
	int n = 0;

	if (fd < 0 || ioctl(fd, FIONREAD, &n))
		return;
	while (n > (int)want && poll(&p, 1, 0) == 1) {
		ssize_t got = read(fd, buf, cm_min(n - want, sizeof(buf)));

		if (got <= 0)
			return;
		n -= (int)got;
	}
	if (!n && want)
		chan_wake(cm, c);
}

/* Take e, which prev precedes, out of the queue. */
static void event_unlink(struct cm *cm, struct cm_chan *c,
			 struct cm_event *prev, struct cm_event *e)
{
	if (prev)
		prev->next = e->next;
	else
		c->head = e->next;
	if (!e->next)
		c->tail = prev ? cm_event_ref(cm, prev) : 0;
	if (c->events)
		c->events--;
}

bool cm_event_pop(struct cm *cm, struct cm_chan *c, int fd,
		  struct rdma_ucm_event_resp *out, struct cm_cause *cause)
{
	struct cm_event *e, *prev = NULL;
	uint32_t n = 0;
	struct cm_id *id;
	struct cm_mc *mc;

	cm_event_come(cm);
	e = cm_event_at(cm, c->head);
	while (e && e->due && n++ < CM_MAX_EVENT) {
		prev = e;
		e = cm_event_at(cm, e->next);
	}
	if (!e) {
		if (!prev)
			c->head = c->tail = c->events = 0;
		chan_match_bytes(cm, c, fd);
		return false;
	}
	*out = e->resp;
	*cause = e->cause;
	id = cm_id_at(cm, e->id);
	if (id)
		id->events_reported++;
	mc = cm_mc_at(cm, e->mc);
	if (mc)
		mc->events_reported++;
	event_unlink(cm, c, prev, e);
	cm_event_free(cm, e);
	chan_match_bytes(cm, c, fd);
	if (id && out->event == CM_EV_CONNECT_REQUEST) {
		id->backlog++;
		cm_unpark(cm, id);
	}
	return true;
}

/*
 * Drop the channel's events of that id and of that multicast join (0: of any);
 * to: hand them over instead.
 */
static void events_remove(struct cm *cm, struct cm_chan *c, uint32_t id,
			  uint32_t mc, struct cm_chan *to)
{
	struct cm_event *e, *prev = NULL, *next;
	uint32_t n = 0;

	for (e = cm_event_at(cm, c->head); e && n++ < CM_MAX_EVENT; e = next) {
		struct cm_id *req;

		next = cm_event_at(cm, e->next);
		if ((id && e->id != id) || (mc && e->mc != mc)) {
			prev = e;
			continue;
		}
		event_unlink(cm, c, prev, e);
		req = cm_deref(cm, e->req);
		if (to) {
			event_append(cm, to, e);
			if (req)
				req->chan = cm_chan_ref(cm, to);
			continue;
		}
		cm_event_free(cm, e);
		if (req)
			cm_id_destroy(cm, req, -1);
	}
}

void cm_event_purge(struct cm *cm, struct cm_id *id, int fd)
{
	struct cm_chan *c = cm_chan_at(cm, id->chan);

	if (!c || !c->head)
		return;
	events_remove(cm, c, cm_id_ref(cm, id), 0, NULL);
	chan_match_bytes(cm, c, fd);
}

void cm_event_purge_mc(struct cm *cm, struct cm_mc *mc, int fd)
{
	struct cm_id *id = cm_id_at(cm, mc->id);
	struct cm_chan *c = id ? cm_chan_at(cm, id->chan) : NULL;

	if (!c)
		return;
	events_remove(cm, c, 0, cm_mc_ref(cm, mc), NULL);
	chan_match_bytes(cm, c, fd);
}

void cm_event_free_all(struct cm *cm, struct cm_chan *c)
{
	events_remove(cm, c, 0, 0, NULL);
	c->head = c->tail = c->events = 0;
}

void cm_event_move(struct cm *cm, struct cm_id *id, struct cm_chan *to, int fd,
		   int to_fd)
{
	struct cm_chan *from = cm_chan_at(cm, id->chan);

	if (!from)
		return;
	events_remove(cm, from, cm_id_ref(cm, id), 0, to);
	chan_match_bytes(cm, from, fd);
	chan_match_bytes(cm, to, to_fd);
	if (chan_events(cm, to))
		event_count_ring(&to->posts);
}

/* In the order in which they were sent. */
static void event_insert(struct cm *cm, struct cm_chan *c, struct cm_event *e)
{
	struct cm_event *last = cm_event_at(cm, c->tail), *at;
	uint32_t *ref = &c->head;

	if (last && last->order < e->order) /* as most of them are */
		ref = &last->next;
	while ((at = cm_event_at(cm, *ref)) && at->order < e->order)
		ref = &at->next;
	e->next = *ref;
	*ref = cm_event_ref(cm, e);
	if (!e->next)
		c->tail = *ref;
	c->events++;
}

/* Wake all who wait, perhaps again. */
static void chan_announce(struct cm *cm, struct cm_chan *c)
{
	chan_wake(cm, c);
	event_count_ring(&c->posts);
}

/* How many of the channel's events are there now that were not. */
static uint32_t chan_come(struct cm *cm, struct cm_chan *c, uint64_t now)
{
	struct cm_event *e = cm_event_at(cm, c->head);
	uint64_t *at = &cm->t->late_at;
	uint32_t n = 0, all = 0;

	for (; e && all++ < CM_MAX_EVENT; e = cm_event_at(cm, e->next)) {
		if (e->due > now) {
			*at = *at ? cm_min(*at, e->due) : e->due;
		} else if (e->due) {
			e->due = 0;
			event_arrives(cm, e);
			n++;
		}
	}
	return n;
}

void cm_event_come(struct cm *cm)
{
	struct cm_chan *c;
	uint64_t now;
	uint32_t n;

	if (!cm->t->late_at)
		return;
	now = clock_now();
	if (now < cm->t->late_at)
		return;
	cm->t->late_at = 0;
	cm_for_each_chan(cm, c) {
		n = c->events ? chan_come(cm, c, now) : 0;
		if (n)
			event_count_ring(&c->posts);
		for (n = cm_min(n, BYTES_MAX); n; n--)
			chan_wake(cm, c);
	}
}

void cm_event_catch_up(struct cm *cm)
{
	struct cm_chan *c;

	cm->t->due = 0;
	cm_for_each_chan(cm, c) {
		if (!c->due)
			continue;
		c->due = 0;
		if (c->events)
			chan_announce(cm, c);
	}
}

void cm_event_rebuild(struct cm *cm)
{
	struct cm_event *e;
	struct cm_chan *c;

	cm_for_each_chan(cm, c)
		c->head = c->tail = c->events = 0;
	cm_for_each_event(cm, e) {
		c = cm_chan_at(cm, e->chan);
		if (c && cm_id_at(cm, e->id))
			event_insert(cm, c, e);
		else
			cm_event_free(cm, e);
	}
	cm->t->late_at = 1; /* perhaps */
	cm_for_each_chan(cm, c)
		if (c->events)
			chan_announce(cm, c);
}
