// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands on event channels: GET_EVENT, WRITE_CM_EVENT and MIGRATE_ID.
 * ucma.c calls them with the tables locked; GET_EVENT unlocks them while it
 * waits on the event count of its channel (base/futex.h).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "command.h"

/* Interval between ticks of a waiting thread, without a service thread. */
#define SLICE_NS 100000000

/*
 * Sleep until @posts differs from @seen; with @alone, for SLICE_NS at most.
 * 0 or -errno.
 *
 * write(2) is a cancellation point, so the thread can be cancelled here, as
 * @cancel_state permits.  The futex wait without a timeout is restarted after
 * a signal handler with SA_RESTART, as a write would be.
 */
static int event_sleep(struct event_count *posts, uint32_t seen, bool alone,
		       int cancel_state)
{
	int type, state, inside = shim_inside, ret;

	/* the application's cleanup handlers run outside of the shim */
	shim_inside = 0;
	/* in the other order, glibc 2.36 loses the result of the thread */
	pthread_setcancelstate(cancel_state, &state);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = event_count_wait(posts, seen,
			       alone ? SLICE_NS : EVENT_COUNT_FOR_EVER);
	pthread_setcanceltype(type, NULL);
	pthread_setcancelstate(state, NULL);
	shim_inside = inside;
	return ret;
}

/*
 * Another thread has closed the channel since the command began.  The kernel
 * keeps the file of a thread that is in write(2), so the thread would
 * wait for an event that cannot come.  rping ends like this: it closes the
 * channel while its thread calls rdma_get_cm_event().
 */
int ucma_event_closed(const struct ucma *u)
{
	struct event_count never = { 0 };
	int ret = 0;

	if (u->flags < 0 || u->flags & O_NONBLOCK)
		return -EBADF;
	while (!ret)
		ret = event_sleep(&never, 0, false, u->cancel_state);
	return ret;
}

/*
 * Wait for an event, with the tables unlocked.  0 or -errno.  u->c is looked
 * up again, since the channel may have been destroyed meanwhile.
 */
static int ucma_event_wait(struct ucma *u)
{
	struct event_count *posts = &u->c->posts;
	uint32_t seen = event_count_read(posts);
	const uint64_t channel = u->c->ino;
	bool watch;
	int ret, err;

	cm_settle(&u->cm);
	watch = u->cm.watch;
	cm_unlock(&u->cm);
	if (watch)
		ucma_watch();
	pthread_cleanup_push(
		call_end,
		call_begin(u->cm.f, URXE_CALL_GET_CM_EVENT, 0, channel, 0));
	ret = event_sleep(posts, seen, ucma_unwatched(), u->cancel_state);
	pthread_cleanup_pop(1);
	if (!ret && ucma_unwatched())
		ucma_tick();
	/* repeat on a timeout: the caller may wait for ever anyway */
	while (cm_lock(&u->cm))
		;
	u->c = ucma_own_chan(u, &err);
	return u->c ? ret : err;
}

int ucma_get_event(struct ucma *u)
{
	const struct rdma_ucm_get_event *cmd = u->cmd;
	struct rdma_ucm_event_resp resp;
	int ret;

	if (!cmd->response)
		return -EFAULT;
	while (!cm_event_pop(&u->cm, u->c, u->fd, &resp, &u->after)) {
		if (u->flags & O_NONBLOCK)
			return -EAGAIN;
		ret = ucma_event_wait(u);
		if (ret)
			return ret;
	}
	ucma_trace_event(&resp);
	if (resp.event >= CM_EV_CONNECT_REQUEST &&
	    resp.event <= CM_EV_DISCONNECTED)
		u->cm.watch = true;
	return ucma_put(cmd->response, &resp,
			u->out_len < sizeof(resp) ? u->out_len : sizeof(resp));
}

int ucma_write_cm_event(struct ucma *u)
{
	const struct ucma_write_event *cmd = u->cmd;
	struct cm_id *id;
	int err;

	if (cmd->event != CM_EV_USER && cmd->event != CM_EV_INTERNAL)
		return -EINVAL;
	id = ucma_id(u, cmd->id, &err);
	return id ? cm_event_write(&u->cm, id, cmd->event, (int)cmd->status,
				   cmd->arg) :
		    err;
}

int ucma_migrate_id(struct ucma *u)
{
	const struct rdma_ucm_migrate_id *cmd = u->cmd;
	struct rdma_ucm_migrate_resp resp;
	struct cm_chan *from, *to = u->c;
	struct cm_id *id;
	int err;

	from = ucma_chan(u, (int)cmd->fd);
	if (!from)
		return fcntl((int)cmd->fd, F_GETFD) < 0 ? -ENOENT : -EINVAL;
	u->c = from;
	id = ucma_id(u, cmd->id, &err);
	if (!id)
		return err;
	resp.events_reported = id->events_reported;
	if (from != to) {
		cm_event_move(&u->cm, id, to, (int)cmd->fd, u->fd);
		id->chan = cm_chan_ref(&u->cm, to);
	}
	return ucma_put(cmd->response, &resp, sizeof(resp));
}
