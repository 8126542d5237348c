// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Events that an object leaves behind when it is destroyed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "context.h"
#include "event.h"

uint32_t event_async_fifo(const struct ibv_context *ibv)
{
	uint32_t number;

	return fifo_number(ibv->async_fd, &number) ? 0 : number + 1;
}

/* What one thread has in its hand, another would miss in the FIFO. */
static pthread_mutex_t take_lock = PTHREAD_MUTEX_INITIALIZER;

void event_after_fork(void)
{
	pthread_mutex_init(&take_lock, NULL);
}

/*
 * Take the records of one element out of a FIFO: read all, write the others
 * back.  Through descriptors of our own, because the application's may be
 * blocking and is not ours to change.  The number of records taken.
 */
static uint32_t take_back(int fd, uint64_t element, size_t record)
{
	char path[32], rec[16];
	uint32_t taken = 0;
	uint64_t who;
	ssize_t left;
	int rd, wr;

	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	pthread_mutex_lock(&take_lock);
	rd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	wr = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	/* as many as a FIFO holds: what comes meanwhile is not ours */
	for (left = 65536 / record; rd >= 0 && wr >= 0 && left; left--) {
		if (read(rd, rec, record) != (ssize_t)record)
			break;
		memcpy(&who, rec, sizeof(who));
		if (who == element) {
			taken++;
			continue;
		}
		if (write(wr, rec, record) != (ssize_t)record)
			break;
	}
	if (rd >= 0)
		close(rd);
	if (wr >= 0)
		close(wr);
	pthread_mutex_unlock(&take_lock);
	return taken;
}

/*
 * Events that were raised and not taken back were read: core has them, or the
 * application, which may be anywhere between its read and its acknowledgement.
 */
static uint32_t owed(_Atomic uint32_t *raised, uint32_t taken)
{
	return load_acquire(raised) - taken;
}

static bool behind(uint32_t completed, uint32_t events)
{
	return (int32_t)(completed - events) < 0;
}

void event_wait_cq(struct urxe_vcq *vcq)
{
	struct ibv_cq *ibcq = &vcq->v.cq;
	struct urxe_cq *cq = &vcq->cq;
	uint32_t comp = 0, async;

	if (ibcq->channel)
		comp = take_back(ibcq->channel->fd, (uintptr_t)ibcq, 8);
	comp = owed(&cq->sh->comp_events, comp);
	async = take_back(ibcq->context->async_fd, (uintptr_t)ibcq, 16);
	async = owed(&cq->sh->async_events, async);
	pthread_mutex_lock(&ibcq->mutex);
	while (behind(ibcq->comp_events_completed, comp) ||
	       behind(ibcq->async_events_completed, async))
		pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
	pthread_mutex_unlock(&ibcq->mutex);
}

/* Until `completed` async events of an element are as many as were read. */
static void wait_async(const struct ibv_context *ibv, uintptr_t element,
		       _Atomic uint32_t *raised, const uint32_t *completed,
		       pthread_mutex_t *mutex, pthread_cond_t *cond)
{
	uint32_t events = take_back(ibv->async_fd, element, 16);

	events = owed(raised, events);
	pthread_mutex_lock(mutex);
	while (behind(*completed, events))
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

void event_wait_qp(struct ibv_qp *ibqp)
{
	wait_async(ibqp->context, (uintptr_t)ibqp, &to_uqp(ibqp)->sh->events,
		   &ibqp->events_completed, &ibqp->mutex, &ibqp->cond);
}

void event_wait_srq(struct ibv_srq *ibsrq)
{
	wait_async(ibsrq->context, (uintptr_t)ibsrq,
		   &to_usrq(ibsrq)->sh->events, &ibsrq->events_completed,
		   &ibsrq->mutex, &ibsrq->cond);
}
