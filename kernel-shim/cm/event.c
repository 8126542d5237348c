// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events: a queue per channel, and bytes in the channel's FIFO that make its
 * descriptor readable.  All functions run under the lock of the tables.
 *
 * Within a command the number of bytes may be wrong.  After cm_settle() the
 * FIFO has at least one byte if an event is deliverable, except for a channel
 * that is marked `due` for lack of a descriptor.  Surplus bytes are possible:
 * the poller then finds no event.  Each of the first BYTES_MAX events adds a
 * byte of its own, so that it wakes edge-triggered pollers.  If a process is
 * killed, bytes may get lost, but not events.  The next cm_event_pop()
 * corrects the number of bytes.
 *
 * Threads that sleep in GET_EVENT wait for the event count `posts` instead.
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
 * Delayed events: the sender may delay an event (cm.delay_of) if the channel's
 * process has a service thread, which calls cm_tick() (cm_chan.delays_events).
 * The event is queued at once, but not deliverable before the time `due`.  As
 * in the kernel, the events of an id are delivered in order: an event is never
 * due before an earlier one of the same id.  Events of different ids may
 * overtake each other.  The first event of a passive id is its CONNECT_REQUEST.
 */

#define BYTES_MAX 64 /* far below the smallest capacity of a pipe */

struct cm_event *cm_event_new(struct cm *cm, struct cm_id *id, uint32_t event,
			      int status)
{
	struct cm_event *e;

	/*
	 * A passive id that was not accepted yet has no uid: it gets only
	 * events that the application writes itself.
	 */
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

/* Append an event to the queue and mark it in use. */
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

/*
 * Write one byte.  Return false if that is not possible, with EPIPE if there
 * is no reader; a full pipe is no error.  SIGPIPE is not delivered to the
 * application.
 */
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

/* No descriptor was available to write a byte: cm_settle() retries. */
static void chan_set_due(struct cm *cm, struct cm_chan *c)
{
	if (c->state == CM_CHAN_LIVE)
		c->due = cm->t->due = 1;
}

/* Return the ref of the id whose events must stay in order with @e. */
static uint32_t event_owner(const struct cm_event *e)
{
	return e->req.id ? e->req.id : e->id;
}

/* Return the latest due time of the queued events of e's id; 0: none. */
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

/* Set the due time of an event.  Return false if it is not delayed. */
static bool event_delay(struct cm *cm, struct cm_chan *c, struct cm_event *e)
{
	uint64_t *at = &cm->t->due_at, after = 0;
	uint64_t delay = 0;

	if (cm->delay_of && c->delays_events && !cm->undelayed)
		delay = cm->delay_of(e->resp.event);
	e->due = delay ? clock_now() + delay : 0;
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

/* Change the state of the id that the event, now deliverable, reports. */
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

	/* the table is shared: leave entries for other events */
	if (c && c->events >= CM_MAX_WRITTEN)
		return -ENOMEM;
	e = cm_event_new(cm, id, event, status);
	if (!e)
		return -ENOMEM;
	memcpy(&e->resp.param, &arg, sizeof(arg));
	cm_event_send(cm, e);
	return 0;
}

/* Write a byte to wake pollers.  cm_event_pop() removes a surplus byte. */
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

/* Return the number of deliverable events. */
static uint32_t chan_events(struct cm *cm, struct cm_chan *c)
{
	struct cm_event *e = cm_event_at(cm, c->head);
	uint32_t n = 0, all = 0;

	if (!cm->t->due_at)
		return c->events;
	for (; e && all++ < CM_MAX_EVENT; e = cm_event_at(cm, e->next))
		n += !e->due;
	return n;
}

/*
 * Remove bytes in excess of the deliverable events; if there are events but
 * no byte, write one.  @fd: a descriptor of the channel for reading; -1: do
 * nothing.
 */
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

/* Unlink @e, whose predecessor is @prev or NULL, from the queue. */
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

	cm_event_release_due(cm);
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
 * Drop the channel's events that match the refs @id and @mc; 0 matches any.
 * A new id whose CONNECT_REQUEST is dropped is destroyed.  If @to is not
 * NULL, append the events to its queue instead.
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

/* Insert an event in the order of sending (cm_event.order). */
static void event_insert(struct cm *cm, struct cm_chan *c, struct cm_event *e)
{
	struct cm_event *last = cm_event_at(cm, c->tail), *at;
	uint32_t *ref = &c->head;

	if (last && last->order < e->order) /* the common case */
		ref = &last->next;
	while ((at = cm_event_at(cm, *ref)) && at->order < e->order)
		ref = &at->next;
	e->next = *ref;
	*ref = cm_event_ref(cm, e);
	if (!e->next)
		c->tail = *ref;
	c->events++;
}

/* Wake pollers and threads in GET_EVENT, possibly a second time. */
static void chan_announce(struct cm *cm, struct cm_chan *c)
{
	chan_wake(cm, c);
	event_count_ring(&c->posts);
}

/*
 * Make the channel's events deliverable that are due at @now, and return
 * their number.  due_at becomes the due time of the earliest remaining one.
 */
static uint32_t chan_release_due(struct cm *cm, struct cm_chan *c, uint64_t now)
{
	struct cm_event *e = cm_event_at(cm, c->head);
	uint64_t *at = &cm->t->due_at;
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

void cm_event_release_due(struct cm *cm)
{
	struct cm_chan *c;
	uint64_t now;
	uint32_t n;

	if (!cm->t->due_at)
		return;
	now = clock_now();
	if (now < cm->t->due_at)
		return;
	cm->t->due_at = 0;
	cm_for_each_chan(cm, c) {
		n = c->events ? chan_release_due(cm, c, now) : 0;
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
	cm->t->due_at = 1; /* recomputed by the next cm_event_release_due() */
	cm_for_each_chan(cm, c)
		if (c->events)
			chan_announce(cm, c);
}
