// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * State of the ports and of the paths between them, and port events.
 * fabric_set_port() is called by urxe port and by fault injection,
 * fabric_port_event() also by fabric_refresh_gids().
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "shared/kept_event.h"

/*
 * If the context's owner writes its async events itself (keeps_async), append
 * the event to its queue and wake the service thread; this preserves the
 * order.  False: it does not, or the queue is full.  The element is the port
 * number, 1.
 */
static bool port_event_keep(struct urxe_arena *a, uint32_t fifo, uint32_t event)
{
	if (!load_relaxed(&a->keeps_async) ||
	    !kept_event_put(a->kept, fifo, 1, event, false))
		return false;
	store_seq_cst(&a->kept_events, 1);
	event_count_ring(&a->wake);
	return true;
}

static void port_event_send(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
			    uint32_t event)
{
	struct urxe_arena *a;
	uint32_t fifo;
	int fd;

	if (arena_map_peer(f, slot, gen, &a, &fd))
		return;
	fifo = load_acquire(&a->async_fifo);
	/* a full FIFO loses the event: the program reads none */
	if (!port_event_keep(a, fifo, event) &&
	    fifo_send_async(f, slot, gen, fifo, 1, event) == -EAGAIN)
		fabric_fail(EAGAIN, "context %u.%u does not read async events",
			    slot, gen);
	arena_unmap(a);
	close(fd);
}

/*
 * The contexts are determined before the first event is sent: a program that
 * opens another one when it gets the event must not get it there again.
 */
void fabric_port_event(struct urxe_fabric *f, uint32_t k, uint32_t event)
{
	struct urxe_dev *dev = f->dev;
	uint32_t slot, gen[URXE_MAX_CTX];
	bool live[URXE_MAX_CTX];

	for (slot = 0; slot < URXE_MAX_CTX; slot++) {
		gen[slot] = load_relaxed(&dev->ctx[slot].gen);
		live[slot] = load_acquire(&dev->ctx[slot].state) ==
				     URXE_CTX_LIVE &&
			     hca_of_ctx(dev, slot) == &dev->hca[k];
	}
	for (slot = 0; slot < URXE_MAX_CTX; slot++)
		if (live[slot])
			port_event_send(f, slot, gen[slot], event);
}

/* ------------------------------------------------------- paths */

/* Repetitions while other processes change ports */
#define PATH_TRIES 100

/* The nodes that links join form a tree each (union-find). */
static uint32_t root_of(uint16_t parent[NODES], uint32_t node)
{
	while (parent[node] != node)
		node = parent[node] = parent[parent[node]];
	return node;
}

static void nodes_join(const struct urxe_dev *dev, uint16_t parent[NODES],
		       uint32_t node, const struct urxe_link_end *peer)
{
	const uint32_t other = peer->node;

	if (other < dev_hcas(dev) ?
		    load_seq_cst(&dev->hca[other].down) & PORT_DOWN_BITS :
		    other - URXE_MAX_HCA >= dev_switches(dev))
		return;
	parent[root_of(parent, node)] = (uint16_t)root_of(parent, other);
}

/* Find which nodes are joined by links that are not down. */
static void nodes_join_all(const struct urxe_dev *dev, uint16_t parent[NODES])
{
	const struct urxe_switch *sw = dev->sw;
	uint32_t k, s, port;

	for (k = 0; k < NODES; k++)
		parent[k] = (uint16_t)k;
	for (k = 0; k < dev_hcas(dev); k++)
		if (!(load_seq_cst(&dev->hca[k].down) & PORT_DOWN_BITS))
			nodes_join(dev, parent, k, &dev->hca[k].peer);
	for (s = 0; s < dev_switches(dev); s++, sw++)
		for (port = 1; port <= switch_ports(sw); port++)
			if (!(load_seq_cst(&sw->cut[port]) & SWITCH_CUT))
				nodes_join(dev, parent, NODE_SWITCH(s),
					   &sw->peer[port]);
}

static uint32_t path_word(const struct urxe_dev *dev, uint16_t parent[NODES],
			  uint32_t k, uint32_t j)
{
	const struct urxe_hca *a = &dev->hca[k], *b = &dev->hca[j];
	enum urxe_port_state state = URXE_PORT_ACTIVE;

	if (a->infiniband != b->infiniband)
		return URXE_PORT_NOP;
	if (load_seq_cst(&a->port_state) != URXE_PORT_ACTIVE ||
	    load_seq_cst(&b->port_state) != URXE_PORT_ACTIVE)
		state = URXE_PORT_DOWN;
	else if (dev->has_links && root_of(parent, k) != root_of(parent, j))
		state = URXE_PORT_NOP;
	return URXE_PATH(state, load_seq_cst(&a->subnet.gen) +
					load_seq_cst(&b->subnet.gen));
}

/*
 * A process that changes a port or link increments port_changes after the
 * change, and then stores all paths.  If it reads another number after that,
 * it repeats: the last store has the final values (all seq_cst).  All paths
 * are stored, since a process may have been killed before it stored its own.
 */
void paths_update(struct urxe_dev *dev)
{
	uint16_t parent[NODES];
	uint32_t tries = 0, before, k, j;

	do {
		before = load_seq_cst(&dev->port_changes);
		nodes_join_all(dev, parent);
		for (k = 0; k < dev_hcas(dev); k++)
			for (j = 0; j < dev_hcas(dev); j++)
				store_seq_cst(&dev->hca[k].path[j],
					      path_word(dev, parent, k, j));
	} while (load_seq_cst(&dev->port_changes) != before &&
		 ++tries < PATH_TRIES);
}

static void ports_changed(struct urxe_dev *dev)
{
	fetch_add_seq_cst(&dev->port_changes, 1);
	paths_update(dev);
}

/* ------------------------------------------------------- states */

uint32_t port_state_up(const struct urxe_dev *dev, uint32_t k)
{
	return dev->hca[k].infiniband && dev->sm_external ? URXE_PORT_INIT :
							    URXE_PORT_ACTIVE;
}

/* The port of a switch at the other end of a link went up or down. */
static void switch_port_begin(struct urxe_dev *dev,
			      const struct urxe_link_end *p)
{
	const uint32_t s = (uint32_t)p->node - URXE_MAX_HCA;
	struct urxe_switch *sw = &dev->sw[s];

	if (s >= dev_switches(dev) || p->port > URXE_SWITCH_PORTS)
		return;
	store_seq_cst(&sw->state[p->port],
		      dev->sm_external ? URXE_PORT_INIT : URXE_PORT_ACTIVE);
	store_relaxed(&sw->changed, 1);
}

int fabric_set_port_state(struct urxe_fabric *f, uint32_t k, uint32_t state)
{
	struct urxe_hca *hca = &f->dev->hca[k];
	uint32_t was;

	fabric_reap(f);
	was = exchange_seq_cst(&hca->port_state, state);
	ports_changed(f->dev);
	if (was == state)
		return 1;
	if (was == URXE_PORT_DOWN || state == URXE_PORT_DOWN)
		switch_port_begin(f->dev, &hca->peer);
	if (state == URXE_PORT_DOWN)
		fetch_add_relaxed(&hca->counter[URXE_CNT_LINK_DOWNED], 1);
	if (state == URXE_PORT_ACTIVE)
		fabric_port_event(f, k, IBV_EVENT_PORT_ACTIVE);
	else if (state == URXE_PORT_DOWN)
		fabric_port_event(f, k, IBV_EVENT_PORT_ERR);
	return 0;
}

/*
 * Set or clear a bit of `down`, and the state that follows from it.  Another
 * process may do the same concurrently: repeat until they agree.
 */
static int port_hold(struct urxe_fabric *f, uint32_t k, uint32_t bit, bool up)
{
	struct urxe_hca *hca = &f->dev->hca[k];
	const uint32_t was = up ? fetch_and_seq_cst(&hca->down, ~bit) :
				  fetch_or_seq_cst(&hca->down, bit);
	uint32_t down, tries = 0;

	if (!(was & bit) == up)
		return 1;
	do {
		down = load_seq_cst(&hca->down) & PORT_DOWN_BITS;
		if (down || load_seq_cst(&hca->port_state) == URXE_PORT_DOWN)
			fabric_set_port_state(f, k,
					      down ? URXE_PORT_DOWN :
						     port_state_up(f->dev, k));
	} while (!down != !(load_seq_cst(&hca->down) & PORT_DOWN_BITS) &&
		 ++tries < PATH_TRIES);
	return 0;
}

int fabric_set_port(struct urxe_fabric *f, uint32_t k, bool up)
{
	const uint32_t other = f->dev->hca[k].peer.node;
	const int ret = port_hold(f, k, PORT_DOWN_HERE, up);

	if (!ret && other < dev_hcas(f->dev))
		port_hold(f, other, PORT_DOWN_THERE, up);
	return ret;
}

/* One end of a link that is taken down or up; 1: it had that state. */
static int link_end_set(struct urxe_fabric *f, const struct urxe_link_end *p,
			bool up)
{
	const uint32_t s = (uint32_t)p->node - URXE_MAX_HCA;
	_Atomic uint32_t *cut;
	uint32_t was;

	if (p->node < dev_hcas(f->dev))
		return port_hold(f, p->node, PORT_DOWN_THERE, up);
	if (s >= dev_switches(f->dev) || p->port > URXE_SWITCH_PORTS)
		return 1;
	cut = &f->dev->sw[s].cut[p->port];
	was = up ? fetch_and_seq_cst(cut, ~SWITCH_CUT) :
		   fetch_or_seq_cst(cut, SWITCH_CUT);
	switch_port_begin(f->dev, p);
	return !(was & SWITCH_CUT) == up;
}

int fabric_set_link(struct urxe_fabric *f, uint32_t s, uint32_t port, bool up)
{
	const struct urxe_link_end here = { .node = (uint16_t)NODE_SWITCH(s),
					    .port = (uint16_t)port };
	int ret;

	if (s >= dev_switches(f->dev) || !port ||
	    port > switch_ports(&f->dev->sw[s]) ||
	    f->dev->sw[s].peer[port].node == NODE_NONE)
		return -EINVAL;
	ret = link_end_set(f, &here, up);
	link_end_set(f, &f->dev->sw[s].peer[port], up);
	ports_changed(f->dev);
	return ret;
}

bool ports_are_initial(const struct urxe_dev *dev)
{
	uint32_t k, s, port, bits;

	for (k = 0; k < dev_hcas(dev); k++) {
		bits = load_acquire(&dev->hca[k].down);
		if (PORT_DOWN_FIRST(bits & PORT_DOWN_BITS) !=
		    (bits & PORT_DOWN_FIRST(PORT_DOWN_BITS)))
			return false;
	}
	for (s = 0; s < dev_switches(dev); s++)
		for (port = 1; port <= URXE_SWITCH_PORTS; port++) {
			bits = load_acquire(&dev->sw[s].cut[port]);
			if (!(bits & SWITCH_CUT) != !(bits & SWITCH_CUT_FIRST))
				return false;
		}
	return dev->sm_external || subnet_is_initial(dev);
}
