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

bool event_send_comp(int fd, uint64_t user)
{
	int saved = errno;
	ssize_t n;

	if (fd < 0)
		return true; /* nobody is there to read it */
	n = write(fd, &user, sizeof(user));
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
		while (n && event_send_comp(cq_event_fd(&cq->view),
					    cq->sh->user))
			n--;
		if (n)
			atomic_fetch_add_explicit(&cq->sh->pending_events, n,
						  memory_order_relaxed);
	}
	pthread_mutex_unlock(&ctx->lock);
}

void event_raise(struct urxe_peer *peer, uint32_t fifo, uint64_t element,
		 enum ibv_event_type type)
{
	struct async_record r = { .element = element, .type = type };
	int fd, saved = errno;

	fd = event_open(peer, fifo);
	if (fd >= 0) {
		if (write(fd, &r, sizeof(r)) != sizeof(r))
			urxe_why("async event %d lost: its FIFO is full",
				 (int)type);
		close(fd);
	}
	errno = saved;
}

/*
 * Take the records of one element out of a FIFO: read all, write the others
 * back.  Through descriptors of our own, because the application's may be
 * blocking and is not ours to change.
 */
static void take_back(int fd, uint64_t element, size_t record)
{
	char path[32], rec[16];
	uint64_t who;
	ssize_t left;
	int rd, wr;

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	wr = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	/* as many as a FIFO holds: what comes meanwhile is not ours */
	for (left = 65536 / record; rd >= 0 && wr >= 0 && left; left--) {
		if (read(rd, rec, record) != (ssize_t)record)
			break;
		memcpy(&who, rec, sizeof(who));
		if (who == element)
			continue;
		if (write(wr, rec, record) != (ssize_t)record)
			break;
	}
	if (rd >= 0)
		close(rd);
	if (wr >= 0)
		close(wr);
}

void event_wait_cq(struct urxe_cq *cq)
{
	struct ibv_cq *ibcq = &cq->vcq.cq;
	uint32_t comp, async;

	if (ibcq->channel)
		take_back(ibcq->channel->fd, (uintptr_t)ibcq, 8);
	take_back(cq->ctx->ibv->async_fd, (uintptr_t)ibcq, 16);
	pthread_mutex_lock(&cq->ctx->lock);
	comp = cq->comp_reported;
	async = cq->async_reported;
	pthread_mutex_unlock(&cq->ctx->lock);
	pthread_mutex_lock(&ibcq->mutex);
	while (ibcq->comp_events_completed != comp ||
	       ibcq->async_events_completed != async)
		pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
	pthread_mutex_unlock(&ibcq->mutex);
}

void event_wait_qp(struct urxe_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	uint32_t reported;

	take_back(qp->ctx->ibv->async_fd, (uintptr_t)ibqp, 16);
	pthread_mutex_lock(&qp->ctx->lock);
	reported = qp->async_reported;
	pthread_mutex_unlock(&qp->ctx->lock);
	pthread_mutex_lock(&ibqp->mutex);
	while (ibqp->events_completed != reported)
		pthread_cond_wait(&ibqp->cond, &ibqp->mutex);
	pthread_mutex_unlock(&ibqp->mutex);
}

void event_wait_srq(struct urxe_srq *srq)
{
	struct ibv_srq *ibsrq = &srq->vsrq.srq;
	uint32_t reported;

	take_back(srq->ctx->ibv->async_fd, (uintptr_t)ibsrq, 16);
	pthread_mutex_lock(&srq->ctx->lock);
	reported = srq->async_reported;
	pthread_mutex_unlock(&srq->ctx->lock);
	pthread_mutex_lock(&ibsrq->mutex);
	while (ibsrq->events_completed != reported)
		pthread_cond_wait(&ibsrq->cond, &ibsrq->mutex);
	pthread_mutex_unlock(&ibsrq->mutex);
}

void urxe_async_event(struct ibv_context *ibctx, struct ibv_async_event *event)
{
	struct urxe_context *ctx = to_uctx(ibctx);

	pthread_mutex_lock(&ctx->lock);
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		to_ucq(event->element.cq)->async_reported++;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		to_usrq(event->element.srq)->async_reported++;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		to_uqp(event->element.qp)->async_reported++;
		break;
	default:
		break;
	}
	pthread_mutex_unlock(&ctx->lock);
}
