// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Waiting for events, and ids that change their channel. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ucma.h"

#define SLICE_NS 100000000 /* between looks, when nobody else looks */

/* What a caller must have room for; the rest is newer. */
#define EVENT_MIN offsetof(struct rdma_ucm_event_resp, reserved)

/*
 * A futex without a time limit is what the kernel restarts after a signal
 * whose handler has SA_RESTART, as it would restart the write; and write is
 * a cancellation point.
 */
static int sleep_on(_Atomic uint32_t *word, uint32_t seen, bool alone,
		    int cancel_state)
{
	const struct timespec slice = { .tv_nsec = SLICE_NS };
	int type, state, inside = shim_inside;
	long ret;

	shim_inside = 0; /* cleanup handlers are the application's code */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	pthread_setcancelstate(cancel_state, &state);
	ret = syscall(SYS_futex, word, FUTEX_WAIT, seen, alone ? &slice : NULL,
		      NULL, 0);
	pthread_setcancelstate(state, NULL);
	pthread_setcanceltype(type, NULL);
	shim_inside = inside;
	return ret && errno == EINTR ? -EINTR : 0;
}

/* The lock is released while it sleeps; afterwards u->c may be void. */
static int wait_event(struct ucma *u)
{
	_Atomic uint32_t *word = &u->c->posts;
	uint32_t seen = atomic_load_explicit(word, memory_order_relaxed);
	_Atomic uint32_t *sleepers = &u->c->sleepers;
	bool watch = u->cm.watch;
	int ret;

	atomic_fetch_add_explicit(sleepers, 1, memory_order_seq_cst);
	cm_unlock(&u->cm);
	if (watch)
		ucma_watch();
	ret = sleep_on(word, seen, ucma_unwatched(), u->cancel_state);
	atomic_fetch_sub_explicit(sleepers, 1, memory_order_relaxed);
	if (!ret && ucma_unwatched())
		ucma_tick();
	cm_lock(&u->cm);
	u->c = ucma_chan(u, u->fd);
	return u->c ? ret : -EBADF;
}

static bool next_event(struct ucma *u, struct rdma_ucm_event_resp *resp)
{
	if (ucma_host_is_used())
		ucma_host_fetch(u);
	return cm_event_pop(&u->cm, u->c, u->fd, resp);
}

int ucma_get_event(struct ucma *u)
{
	struct rdma_ucm_event_resp resp;
	struct rdma_ucm_get_event cmd;
	int flags, ret;

	if (u->out_len < EVENT_MIN)
		return -ENOSPC;
	ucma_get(u, &cmd);
	if (!cmd.response)
		return -EFAULT;
	while (!next_event(u, &resp)) {
		flags = fcntl(u->fd, F_GETFL);
		if (flags < 0 || flags & O_NONBLOCK)
			return -EAGAIN;
		ret = wait_event(u);
		if (ret)
			return ret;
	}
	if (resp.event >= CM_EV_CONNECT_REQUEST &&
	    resp.event <= CM_EV_DISCONNECTED)
		u->cm.watch = true;
	return ucma_put(cmd.response, &resp,
			u->out_len < sizeof(resp) ? u->out_len : sizeof(resp));
}

int ucma_migrate_id(struct ucma *u)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id cmd;
	struct cm_chan *from, *to = u->c;
	struct cm_id *id;
	int err;

	if (u->out_len < sizeof(resp))
		return -ENOSPC;
	ucma_get(u, &cmd);
	from = ucma_chan(u, (int)cmd.fd);
	if (!from)
		return fcntl((int)cmd.fd, F_GETFD) < 0 ? -ENOENT : -EINVAL;
	u->c = from;
	id = ucma_id(u, cmd.id, &err);
	if (!id)
		return err;
	resp.events_reported = id->events_reported;
	if (from != to) {
		cm_event_move(&u->cm, id, to, (int)cmd.fd, u->fd);
		id->chan = cm_chan_ref(&u->cm, to);
	}
	return ucma_put(cmd.response, &resp, sizeof(resp));
}
