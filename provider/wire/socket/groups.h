/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Multicast reception from other hosts.  A socket bound to a unicast address
 * does not receive multicast.  The socket owner therefore has one more socket
 * for each group that a QP of the fabric is attached to.  The groups are the
 * table dev->mcast in shared memory, at most URXE_MAX_MCAST_GRP.  A new
 * socket owner finds them there.
 *
 * A process that changes the table wakes the socket owner by an empty
 * datagram to the fabric's UDP port.  Memberships that dead processes leave
 * are removed when the socket owner is idle (server_check_cached).
 *
 * Callers: the socket owner's thread calls groups_follow, groups_changed,
 * groups_poll and groups_close; ibv_attach_mcast and ibv_detach_mcast call
 * groups_await and groups_ring, without a lock.
 */
#pragma once

#include <poll.h>

#include "fabric/fabric.h"
#include "wire/socket.h"

struct wire_group {
	uint8_t gid[16];
	struct wire_socket socket;
	/* packets that the socket dropped, as counted so far */
	uint32_t dropped;
};

struct wire_groups {
	uint32_t n;
	/* value of dev->wire.groups at the last groups_follow() */
	uint32_t seen;
	bool missing; /* 1: a group could not be joined; join is retried */
	struct wire_group group[URXE_MAX_MCAST_GRP];
};

/*
 * Join and leave groups until the sockets match the table, then store
 * dev->wire.followed (release) and wake its waiters.  own: the socket owner's
 * address.
 */
void groups_follow(struct wire_groups *g, struct urxe_dev *dev,
		   const uint8_t own[16]);
static inline bool groups_changed(const struct wire_groups *g,
				  const struct urxe_dev *dev)
{
	return g->seen != load_acquire(&dev->wire.groups);
}

/* Fill fds, an array of g->n elements. */
void groups_poll(const struct wire_groups *g, struct pollfd *fds);
void groups_close(struct wire_groups *g);

/*
 * Notify the socket owner, at address `own`, that the table has changed.
 * groups_await() also waits until the socket owner has followed.  It returns
 * without that if the socket owner is dead or takes longer than 500 ms.
 */
void groups_ring(struct urxe_fabric *f, const uint8_t own[16]);
void groups_await(struct urxe_fabric *f, const uint8_t own[16]);
