// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cq.h"
#include "event.h"

struct async_record {
	uint64_t element;
	uint32_t type, zero;
};
static_assert(sizeof(struct async_record) == 16, "as core reads it");

int event_open(struct urxe_peer *peer, uint32_t number)
{
	int fd;

	if (!number)
		return -1;
	fd = fifo_open_writer(peer->fabric, peer->slot, peer->gen, number - 1);
	return fd < 0 ? -1 : fd;
}

bool event_send_comp(int fd, struct urxe_cq_sh *sh)
{
	uint64_t user = sh->user;
	int saved = errno;
	ssize_t n;

	if (fd < 0)
		return true; /* nobody is there to read it */
	n = write(fd, &user, sizeof(user));
	if (n == sizeof(user))
		atomic_fetch_add_explicit(&sh->comp_events, 1,
					  memory_order_release);
	if (n < 0 && errno == EAGAIN) {
		errno = saved;
		return false;
	}
	errno = saved;
	return true;
}

void event_resend(struct urxe_context *ctx)
{
	struct urxe_cq *cq;
	uint32_t n;

	pthread_mutex_lock(&ctx->lock);
	for (cq = ctx->cqs; cq; cq = cq->next) {
		n = atomic_exchange_explicit(&cq->sh->pending_events, 0,
					     memory_order_acquire);
		while (n && event_send_comp(cq_event_fd(&cq->view), cq->sh))
			n--;
		if (n)
			atomic_fetch_add_explicit(&cq->sh->pending_events, n,
						  memory_order_relaxed);
	}
	pthread_mutex_unlock(&ctx->lock);
}

/*
 * Counted after it was written: who dies in between leaves nobody waiting for
 * an acknowledgement that cannot come.
 */
static void send_async(struct urxe_peer *peer, uint32_t fifo, uint64_t element,
		       enum ibv_event_type type, _Atomic uint32_t *count)
{
	struct async_record r = { .element = element, .type = type };
	int fd, saved = errno;

	fd = event_open(peer, fifo);
	if (fd >= 0) {
		if (write(fd, &r, sizeof(r)) == sizeof(r))
			atomic_fetch_add_explicit(count, 1,
						  memory_order_release);
		else
			urxe_why("async event %d lost: its FIFO is full",
				 (int)type);
		close(fd);
	}
	errno = saved;
}

void event_raise_qp(struct urxe_peer *peer, struct urxe_qp_sh *sh,
		    enum ibv_event_type type)
{
	send_async(peer, sh->async_fifo, sh->user, type, &sh->events);
}

void event_raise_srq(struct urxe_peer *peer, struct urxe_srq_sh *sh,
		     enum ibv_event_type type)
{
	send_async(peer, sh->async_fifo, sh->user, type, &sh->events);
}

void event_raise_cq(struct urxe_peer *peer, struct urxe_cq_sh *sh,
		    enum ibv_event_type type)
{
	send_async(peer, sh->async_fifo, sh->user, type, &sh->async_events);
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
	return atomic_load_explicit(raised, memory_order_acquire) - taken;
}

static bool behind(uint32_t completed, uint32_t events)
{
	return (int32_t)(completed - events) < 0;
}

void event_wait_cq(struct urxe_cq *cq)
{
	struct ibv_cq *ibcq = &cq->vcq.cq;
	uint32_t comp = 0, async;

	if (ibcq->channel)
		comp = take_back(ibcq->channel->fd, (uintptr_t)ibcq, 8);
	comp = owed(&cq->sh->comp_events, comp);
	async = take_back(cq->ctx->ibv->async_fd, (uintptr_t)ibcq, 16);
	async = owed(&cq->sh->async_events, async);
	pthread_mutex_lock(&ibcq->mutex);
	while (behind(ibcq->comp_events_completed, comp) ||
	       behind(ibcq->async_events_completed, async))
		pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
	pthread_mutex_unlock(&ibcq->mutex);
}

/* Until `completed` async events of an element are as many as were read. */
static void wait_async(struct urxe_context *ctx, uintptr_t element,
		       _Atomic uint32_t *raised, const uint32_t *completed,
		       pthread_mutex_t *mutex, pthread_cond_t *cond)
{
	uint32_t events = take_back(ctx->ibv->async_fd, element, 16);

	events = owed(raised, events);
	pthread_mutex_lock(mutex);
	while (behind(*completed, events))
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

void event_wait_qp(struct urxe_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	wait_async(qp->ctx, (uintptr_t)ibqp, &qp->sh->events,
		   &ibqp->events_completed, &ibqp->mutex, &ibqp->cond);
}

void event_wait_srq(struct urxe_srq *srq)
{
	struct ibv_srq *ibsrq = &srq->vsrq.srq;

	wait_async(srq->ctx, (uintptr_t)ibsrq, &srq->sh->events,
		   &ibsrq->events_completed, &ibsrq->mutex, &ibsrq->cond);
}
