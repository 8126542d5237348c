/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Multicast from other hosts.  A socket that is bound to an address does not
 * get what is sent to a group, so whoever holds the fabric's socket has one
 * more for each group that a QP of the fabric is attached to: that is the table
 * in shared memory, at most URXE_MAX_MCAST_GRP of them.  Who takes over finds
 * it there, too.
 *
 * Who changes the table rings at the fabric's port, with an empty datagram.
 * What the dead leave the holder finds when it looks around.
 */
#pragma once

#include <poll.h>

#include "fabric/fabric.h"
#include "wire/socket.h"

struct wire_group {
	uint8_t gid[16];
	struct wire_socket socket;
	uint32_t dropped; /* by it, as it was counted */
};

struct wire_groups {
	uint32_t n;
	uint32_t seen; /* dev->wire.groups */
	bool missing; /* one could not be joined, and is tried again */
	struct wire_group group[URXE_MAX_MCAST_GRP];
};

/* Join and leave, so that it is as in the table; own: the holder's address. */
void groups_follow(struct wire_groups *g, struct urxe_dev *dev,
		   const uint8_t own[16]);
static inline bool groups_changed(const struct wire_groups *g,
				  const struct urxe_dev *dev)
{
	return g->seen != load_acquire(&dev->wire.groups);
}

/* fds of g->n elements */
void groups_poll(const struct wire_groups *g, struct pollfd *fds);
void groups_close(struct wire_groups *g);

/*
 * The table was changed: tell the holder, whose address that is.  It waits
 * until the holder has followed, though not for one that is dead or takes long.
 */
void groups_ring(struct urxe_fabric *f, const uint8_t own[16]);
void groups_await(struct urxe_fabric *f, const uint8_t own[16]);
