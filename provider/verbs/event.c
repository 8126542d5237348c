// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event tags, and the events that are pending when an object is destroyed.
 *
 * The destroyer of a CQ, a QP or an SRQ calls event_wait_*() when no process
 * can raise another event of it.  The steps:
 *
 *  1. Remove the tag from the preload library's table (event_end()), so that
 *     records that are read later are skipped; shared/event_tag.h.  The reply
 *     says how many events of the object were read.
 *  2. Drop the events that are kept in the arena (event_drop()), and remove
 *     the records from the FIFOs (event_take_back()).
 *  3. Wait until the application has acknowledged as many events as were read
 *     (ibv_ack_cq_events(3), ibv_ack_async_event(3)).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "context.h"
#include "engine/cq/event.h"
#include "engine/qp/why.h"
#include "event.h"
#include "qp.h"
#include "verbs.h"

/*
 * libibverbs calls this before ibv_get_async_event returns @event.  Log the
 * reason of an event of a QP.
 */
void urxe_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	(void)ctx;
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		why_log_broken(to_uqp(event->element.qp));
		break;
	default:
		break;
	}
}

uint32_t event_async_fifo(const struct ibv_context *ibv)
{
	uint32_t number;

	return fifo_number(ibv->async_fd, &number) ? 0 : number + 1;
}

/*
 * Serialises event_take_back(): a record that one thread has read and not yet
 * written back would be missed by another thread.
 */
static pthread_mutex_t take_lock = PTHREAD_MUTEX_INITIALIZER;

void event_after_fork(void)
{
	pthread_mutex_init(&take_lock, NULL);
}

/*
 * Read one record with its tag.  The preload library wraps read(), where it
 * replaces tags by addresses, but not readv().
 */
static bool event_read(int fd, char *rec, size_t record)
{
	struct iovec iov = { rec, record };

	return readv(fd, &iov, 1) == (ssize_t)record;
}

/*
 * Remove the records of one object from a FIFO: read all records, and write
 * the others back.  The FIFO is opened again, non-blocking, because the
 * application's descriptor may be blocking and must not be changed.
 */
static void event_take_back(int fd, uint64_t tag, size_t record)
{
	char path[32], rec[EVENT_ASYNC_SIZE];
	uint64_t who;
	ssize_t left;
	int rd, wr;

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	pthread_mutex_lock(&take_lock);
	rd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	wr = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	/*
	 * the capacity of a FIFO; records that arrive later have other tags
	 */
	for (left = 65536 / record; rd >= 0 && wr >= 0 && left; left--) {
		if (!event_read(rd, rec, record))
			break;
		memcpy(&who, rec, sizeof(who));
		if (who != tag && write(wr, rec, record) != (ssize_t)record)
			break;
	}
	if (rd >= 0)
		close(rd);
	if (wr >= 0)
		close(wr);
	pthread_mutex_unlock(&take_lock);
}

/* The object that is destroyed, for the call table (shared/call.h). */
struct event_object {
	struct urxe_context *ctx;
	enum urxe_call_kind call;
	uint32_t number; /* QPN, or index */
};

/* Sleep until *@completed has reached @read; @mutex is held. */
static void event_sleep(const struct event_object *o, uint32_t read,
			const uint32_t *completed, pthread_mutex_t *mutex,
			pthread_cond_t *cond)
{
	struct urxe_call *call =
		call_begin(o->ctx->fabric, o->call, o->ctx->slot, o->number, 0);

	while ((int32_t)(*completed - read) < 0) {
		if (call)
			store_relaxed(&call->events, read - *completed);
		pthread_cond_wait(cond, mutex);
	}
	call_end(call);
}

/*
 * Wait until the application has acknowledged @read events.  The tag is
 * removed, so that @read is final.  Counters wrap around.
 */
static void event_wait(const struct event_object *o, uint32_t read,
		       const uint32_t *completed, pthread_mutex_t *mutex,
		       pthread_cond_t *cond)
{
	pthread_mutex_lock(mutex);
	if ((int32_t)(*completed - read) < 0)
		event_sleep(o, read, completed, mutex, cond);
	pthread_mutex_unlock(mutex);
}

int event_watch(const struct ibv_context *ibv, const void *object,
		enum event_kind kind, uint64_t *tag)
{
	struct event_element e = { .address = (uintptr_t)object,
				   .kind = kind };

	if (ioctl(ibv->cmd_fd, EVENT_IOC_WATCH, &e))
		return -errno;
	*tag = e.tag;
	return 0;
}

/* Remove @tag from the table; return how many of its events were read. */
static struct event_element event_end(const struct ibv_context *ibv,
				      uint64_t tag)
{
	struct event_element e = { .tag = tag };
	int saved = errno;

	ioctl(ibv->cmd_fd, EVENT_IOC_FORGET, &e);
	errno = saved;
	return e;
}

void event_forget(const struct ibv_context *ibv, uint64_t tag)
{
	event_end(ibv, tag);
}

void event_wait_cq(struct urxe_vcq *vcq)
{
	struct ibv_cq *cq = &vcq->v.cq;
	struct event_element e = event_end(cq->context, vcq->tag);
	const struct event_object o = { vcq->cq.ctx, URXE_CALL_DESTROY_CQ,
					vcq->cq.index };

	event_drop(vcq->cq.ctx, vcq->tag);
	event_take_back(cq->channel ? cq->channel->fd : -1, vcq->tag,
			EVENT_COMP_SIZE);
	event_take_back(cq->context->async_fd, vcq->tag, EVENT_ASYNC_SIZE);
	event_wait(&o, e.comp_read, &cq->comp_events_completed, &cq->mutex,
		   &cq->cond);
	event_wait(&o, e.async_read, &cq->async_events_completed, &cq->mutex,
		   &cq->cond);
}

void event_wait_qp(struct ibv_qp *qp)
{
	const uint64_t tag = to_vqp(qp)->tag;
	struct event_element e = event_end(qp->context, tag);
	const struct event_object o = { to_uctx(qp->context),
					URXE_CALL_DESTROY_QP, qp->qp_num };

	event_drop(to_uctx(qp->context), tag);
	event_take_back(qp->context->async_fd, tag, EVENT_ASYNC_SIZE);
	event_wait(&o, e.async_read, &qp->events_completed, &qp->mutex,
		   &qp->cond);
}

void event_wait_srq(struct ibv_srq *srq)
{
	const uint64_t tag = to_vsrq(srq)->tag;
	struct event_element e = event_end(srq->context, tag);
	const struct event_object o = { to_uctx(srq->context),
					URXE_CALL_DESTROY_SRQ, srq->handle };

	event_drop(to_uctx(srq->context), tag);
	event_take_back(srq->context->async_fd, tag, EVENT_ASYNC_SIZE);
	event_wait(&o, e.async_read, &srq->events_completed, &srq->mutex,
		   &srq->cond);
}
