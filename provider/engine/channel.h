/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A completion channel of a context, as those see it who raise events there:
 * its FIFO, opened once for all views of CQs on it.
 */
#pragma once

#include <stdint.h>

struct urxe_channel;
struct urxe_peer;

/*
 * The channel with that number, of which the caller holds the context.  NULL:
 * no memory.  If its FIFO cannot be opened now that is tried again for each
 * event.
 */
struct urxe_channel *channel_get(struct urxe_peer *peer, uint32_t number);
void channel_put(struct urxe_channel *ch);

/* 0; -ENXIO: nobody reads it; -EAGAIN: it is full; or why it is not open. */
int channel_open(struct urxe_channel *ch);
int channel_send(struct urxe_channel *ch, uint64_t tag);
