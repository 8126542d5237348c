// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Events that an object leaves behind when it is destroyed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
static uint32_t event_take_back(int fd, uint64_t element, size_t record)
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
 * Wait until as many are completed.
 */
static void event_wait(int fd, const void *element, size_t record,
		       _Atomic uint32_t *raised, const uint32_t *completed,
		       pthread_mutex_t *mutex, pthread_cond_t *cond)
{
	uint32_t taken = event_take_back(fd, (uintptr_t)element, record);
	uint32_t events = load_acquire(raised) - taken;

	pthread_mutex_lock(mutex);
	while ((int32_t)(*completed - events) < 0)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

void event_wait_cq(struct urxe_vcq *vcq)
{
	struct ibv_cq *cq = &vcq->v.cq;
	struct urxe_cq_sh *sh = vcq->cq.sh;

	event_wait(cq->channel ? cq->channel->fd : -1, cq, 8, &sh->comp_events,
		   &cq->comp_events_completed, &cq->mutex, &cq->cond);
	event_wait(cq->context->async_fd, cq, 16, &sh->async_events,
		   &cq->async_events_completed, &cq->mutex, &cq->cond);
}

void event_wait_qp(struct ibv_qp *qp)
{
	event_wait(qp->context->async_fd, qp, 16, &to_uqp(qp)->sh->events,
		   &qp->events_completed, &qp->mutex, &qp->cond);
}

void event_wait_srq(struct ibv_srq *srq)
{
	event_wait(srq->context->async_fd, srq, 16, &to_usrq(srq)->sh->events,
		   &srq->events_completed, &srq->mutex, &srq->cond);
}
