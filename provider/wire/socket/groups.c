// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Multicast sockets of the socket owner, see groups.h. */
#include <limits.h>
#include <string.h>

#include "base/patience.h"
#include "engine/core/av.h"
#include "engine/core/log.h"
#include "groups.h"
#include "port.h"

/* How long an attach waits for the socket owner, which may be stopped. */
#define TIMEOUT_NS 500000000ull
/* How often the wait checks that the socket owner is alive. */
#define CHECK_NS 10000000ull

static bool groups_have(const struct wire_groups *g, const uint8_t gid[16])
{
	uint32_t i;

	for (i = 0; i < g->n; i++)
		if (!memcmp(g->group[i].gid, gid, 16))
			return true;
	return false;
}

static void groups_leave(struct wire_groups *g, struct urxe_dev *dev)
{
	uint32_t i = 0;

	while (i < g->n) {
		if (mcast_has_members(dev, g->group[i].gid)) {
			i++;
			continue;
		}
		wire_socket_close(&g->group[i].socket);
		g->group[i] = g->group[--g->n];
	}
}

static void groups_join(struct wire_groups *g, const uint8_t own[16],
			const uint8_t gid[16])
{
	struct wire_group *to = &g->group[g->n];
	int err;

	/* groups of the other IP version do not reach this address */
	if (gid_is_ipv4(gid) != gid_is_ipv4(own) || groups_have(g, gid))
		return;
	/* the table changed during the loop */
	if (g->n == URXE_MAX_MCAST_GRP) {
		g->missing = true;
		return;
	}
	err = wire_socket_open_group(&to->socket, own, gid, WIRE_PORT,
				     WIRE_NONBLOCKING);
	if (err) {
		urxe_note("wire: cannot join a multicast group: %s",
			  strerror(-err));
		g->missing = true;
		return;
	}
	memcpy(to->gid, gid, 16);
	to->dropped = 0;
	g->n++;
}

void groups_follow(struct wire_groups *g, struct urxe_dev *dev,
		   const uint8_t own[16])
{
	uint8_t gid[16];
	uint32_t i;

	g->seen = load_acquire(&dev->wire.groups);
	g->missing = false;
	groups_leave(g, dev);
	for (i = 0; i < URXE_MAX_MCAST_GRP; i++)
		if (mcast_group(dev, i, gid))
			groups_join(g, own, gid);
	store_release(&dev->wire.followed, g->seen);
	futex_wake(&dev->wire.followed, INT_MAX);
}

void groups_poll(const struct wire_groups *g, struct pollfd *fds)
{
	uint32_t i;

	for (i = 0; i < g->n; i++)
		fds[i] = (struct pollfd){ .fd = g->group[i].socket.fd,
					  .events = POLLIN };
}

void groups_close(struct wire_groups *g)
{
	while (g->n)
		wire_socket_close(&g->group[--g->n].socket);
}

void groups_ring(struct urxe_fabric *f, const uint8_t own[16])
{
	int err;

	if (load_acquire(&f->dev->wire.socket_owner) && (err = port_ring(own)))
		urxe_note(
			"wire: cannot notify the socket owner of a multicast group: %s",
			strerror(-err));
}

void groups_await(struct urxe_fabric *f, const uint8_t own[16])
{
	struct urxe_wire_dev *w = &f->dev->wire;
	const uint32_t change = load_acquire(&w->groups);
	struct patience patience = patience_begin(TIMEOUT_NS);
	uint32_t followed, who;

	groups_ring(f, own);
	for (;;) {
		followed = load_acquire(&w->followed);
		who = load_acquire(&w->socket_owner);
		if ((int32_t)(followed - change) >= 0 || !who ||
		    process_is_dead(f, who) || patience_ended(&patience))
			return;
		futex_wait(&w->followed, followed, CHECK_NS);
	}
}
