// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <unistd.h>

#include "cq.h"
#include "event.h"
#include "log.h"
#include "peer.h"
#include "srq.h"

bool event_send_comp(int fd, struct urxe_cq_sh *sh)
{
	uint64_t tag = sh->tag;
	int saved = errno;
	ssize_t n;
	bool full;

	if (fd < 0)
		return true; /* nobody is there to read it */
	n = write(fd, &tag, sizeof(tag));
	if (n == sizeof(tag))
		fetch_add_release(&sh->comp_events, 1);
	full = n < 0 && errno == EAGAIN;
	errno = saved;
	return !full;
}

/* A FIFO is full of fewer, and who has read those comes again. */
#define PENDING_MOST 65536

void event_resend(struct urxe_context *ctx)
{
	struct urxe_cq *cq;
	uint32_t n;

	pthread_mutex_lock(&ctx->lock);
	for (cq = ctx->cqs; cq; cq = cq->next) {
		n = exchange_acquire(&cq->sh->pending_events, 0);
		if (unlikely(n > PENDING_MOST))
			n = 1;
		while (n && event_send_comp(cq_event_fd(&cq->view), cq->sh))
			n--;
		if (n)
			fetch_add_relaxed(&cq->sh->pending_events, n);
	}
	pthread_mutex_unlock(&ctx->lock);
}

void event_send_async(struct urxe_peer *peer, uint32_t fifo, uint64_t element,
		      enum ibv_event_type type)
{
	int ret = fifo_send_async(peer->fabric, peer->slot, peer->gen, fifo,
				  element, type);

	if (ret == -EAGAIN)
		urxe_why("async event %d lost: its FIFO is full", (int)type);
}
