// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion channels as the producers of completions see them.
 *
 * A completion channel is a FIFO in the fabric's directory, which the process
 * that created the channel reads (ibv_get_cq_event).  A producer opens it for
 * writing, once for all CQ views that use it: there is one struct
 * urxe_channel for each peer and channel number, with a reference count.
 *
 * cq_view_init() and cq_view_fini() get and put a channel; event.c writes
 * events to it.  peer_lock() protects the list and the counts.  The
 * descriptor is set by compare-and-swap, so channel_open() needs no lock.
 *
 * Errors are -ENXIO if the FIFO has no reader, -EAGAIN if it is full, and
 * other values if it cannot be opened, for example for want of descriptors.
 * A failed open is tried again for each event.  channel_open() and
 * channel_send() preserve errno.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "engine/core/log.h"
#include "engine/mem/peer.h"

/* An element of the peer's list; peer_lock() protects the list and refs. */
struct urxe_channel {
	struct urxe_channel *next;
	struct urxe_peer *peer;
	uint32_t number;
	unsigned int refs;
	_Atomic int fd; /* -1: not open */
};

int channel_open(struct urxe_channel *ch)
{
	struct urxe_peer *p = ch->peer;
	int fd, none = -1, saved = errno;

	if (load_acquire(&ch->fd) >= 0)
		return 0;
	fd = fifo_open_writer(p->fabric, p->slot, p->gen, ch->number);
	errno = saved;
	if (fd < 0)
		return fd;
	if (!cas_acq_rel(&ch->fd, &none, fd))
		close(fd); /* another thread opened it meanwhile */
	return 0;
}

struct urxe_channel *channel_get(struct urxe_peer *peer, uint32_t number)
{
	struct urxe_channel *ch;
	int ret = 0;

	peer_lock();
	for (ch = peer->channels; ch && ch->number != number; ch = ch->next)
		;
	if (!ch && (ch = calloc(1, sizeof(*ch)))) {
		ch->peer = peer;
		ch->number = number;
		store_relaxed(&ch->fd, -1);
		ret = channel_open(ch);
		ch->next = peer->channels;
		peer->channels = ch;
	}
	if (ch)
		ch->refs++;
	peer_unlock();
	if (ret && ret != -ENXIO)
		urxe_note(
			"the completion channel of a peer cannot be opened: %s",
			strerror(-ret));
	return ch;
}

void channel_put(struct urxe_channel *ch)
{
	struct urxe_channel **p;
	bool last;

	peer_lock();
	last = !--ch->refs;
	for (p = &ch->peer->channels; last && *p != ch; p = &(*p)->next)
		;
	if (last)
		*p = ch->next;
	peer_unlock();
	if (!last)
		return;
	if (load_relaxed(&ch->fd) >= 0)
		close(load_relaxed(&ch->fd));
	free(ch);
}

int channel_send(struct urxe_channel *ch, uint64_t tag)
{
	int ret, saved = errno;
	ssize_t n;

	ret = channel_open(ch);
	if (ret)
		return ret;
	n = write(load_acquire(&ch->fd), &tag, sizeof(tag));
	if (n != sizeof(tag))
		ret = n < 0 ? -errno : -EIO;
	errno = saved;
	return ret;
}
