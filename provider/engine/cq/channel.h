/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The producer's view of a completion channel of any context: the write end
 * of its FIFO.  It is opened once and shared by all CQ views (cq.h) of this
 * process that use the channel.  The list and the reference counts are
 * protected by peer_lock().
 */
#pragma once

#include <stdint.h>

struct urxe_channel;
struct urxe_peer;

/*
 * Return a reference to channel number of peer, or NULL if out of memory.
 * The caller holds a reference to peer.  If the FIFO cannot be opened now,
 * channel_send() tries again for each event.
 */
struct urxe_channel *channel_get(struct urxe_peer *peer, uint32_t number);
void channel_put(struct urxe_channel *ch);

/*
 * Open the FIFO unless it is open; write an event.  Returns 0, -ENXIO (no
 * reader), -EAGAIN (FIFO full), or the errno of a failed open or write.
 */
int channel_open(struct urxe_channel *ch);
int channel_send(struct urxe_channel *ch, uint64_t tag);
