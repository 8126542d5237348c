// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * State of the ports and of the paths between them, and port events.
 * fabric_set_link() is called by urxe port, by subnet managers and by fault
 * injection, fabric_port_event() also by fabric_refresh_gids().
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "profile.h"
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

/* The bits of one end of a link; NULL: there is no such end. */
static _Atomic uint32_t *end_bits(struct urxe_dev *dev,
				  const struct urxe_link_end *e)
{
	const uint32_t s = (uint32_t)e->node - URXE_MAX_HCA;

	if (e->node < dev_hcas(dev))
		return &dev->hca[e->node].down;
	return s < dev_switches(dev) && e->port <= URXE_SWITCH_PORTS ?
		       &dev->sw[s].down[e->port] :
		       NULL;
}

static bool end_has(struct urxe_dev *dev, const struct urxe_link_end *e,
		    uint32_t any)
{
	_Atomic uint32_t *bits = end_bits(dev, e);

	return bits && load_seq_cst(bits) & any;
}

static bool end_is_down(struct urxe_dev *dev, const struct urxe_link_end *e)
{
	return end_has(dev, e, LINK_DOWN | PORT_NO_LINK);
}

/* The nodes that links join form a tree each (union-find). */
static uint32_t root_of(uint16_t parent[NODES], uint32_t node)
{
	while (parent[node] != node)
		node = parent[node] = parent[parent[node]];
	return node;
}

static void ends_join(struct urxe_dev *dev, uint16_t parent[NODES],
		      uint32_t node, uint32_t port,
		      const struct urxe_link_end *peer)
{
	const struct urxe_link_end here = { .node = (uint16_t)node,
					    .port = (uint16_t)port };
	const struct urxe_link_end there = *peer;
	const uint32_t none = LINK_DOWN | LINK_STARTING | PORT_NO_LINK;

	if (end_bits(dev, &there) && !end_has(dev, &here, none) &&
	    !end_has(dev, &there, none))
		parent[root_of(parent, node)] =
			(uint16_t)root_of(parent, there.node);
}

/* Find which nodes are joined by links that carry packets. */
static void nodes_join(struct urxe_dev *dev, uint16_t parent[NODES])
{
	uint32_t k, s, port;

	for (k = 0; k < NODES; k++)
		parent[k] = (uint16_t)k;
	for (k = 0; k < dev_hcas(dev); k++)
		ends_join(dev, parent, k, 1, &dev->hca[k].peer);
	for (s = 0; s < dev_switches(dev); s++)
		for (port = 1; port <= switch_ports(&dev->sw[s]); port++)
			ends_join(dev, parent, NODE_SWITCH(s), port,
				  &dev->sw[s].peer[port]);
}

/* What the paths of a device depend on. */
struct path_end {
	uint16_t tree; /* of nodes_join() */
	bool infiniband, active, starting;
	uint32_t gen;
};

static void path_ends(struct urxe_dev *dev, struct path_end end[URXE_MAX_HCA])
{
	uint16_t parent[NODES];
	uint32_t k;

	nodes_join(dev, parent);
	for (k = 0; k < dev_hcas(dev); k++) {
		struct urxe_hca *hca = &dev->hca[k];

		end[k] = (struct path_end){
			.tree = dev->has_links ? (uint16_t)root_of(parent, k) :
						 0,
			.infiniband = hca->infiniband,
			.active = load_seq_cst(&hca->port_state) ==
				  URXE_PORT_ACTIVE,
			.starting = load_seq_cst(&hca->down) &
				    LINK_STARTING,
			.gen = load_seq_cst(&hca->subnet.gen),
		};
	}
}

static uint32_t path_word(const struct path_end *a, const struct path_end *b)
{
	enum urxe_port_state state = URXE_PORT_ACTIVE;

	if (a->infiniband != b->infiniband)
		return URXE_PORT_NOP;
	if (!a->active || !b->active)
		state = URXE_PORT_DOWN;
	else if (a->starting || b->starting || a->tree != b->tree)
		state = URXE_PORT_NOP;
	return URXE_PATH(state, a->gen + b->gen);
}

/* With 1,000 devices there are a million paths, of which few change. */
static void path_set(_Atomic uint32_t *path, uint32_t word)
{
	if (load_seq_cst(path) != word)
		store_seq_cst(path, word);
}

/*
 * A process that changes a port or link increments port_changes after the
 * change, and then sets paths.  If it reads another number after that, it
 * repeats: the last store has the final values.  All accesses are seq_cst: if a
 * process stores an old value after path_set() of another one has found the
 * final value, it reads the number of the other process, and repeats.
 */
static void paths_set(struct urxe_dev *dev, uint32_t first, uint32_t last)
{
	const uint32_t hcas = dev_hcas(dev);
	struct path_end end[URXE_MAX_HCA];
	uint32_t tries = 0, before, k, j;

	do {
		before = load_seq_cst(&dev->port_changes);
		path_ends(dev, end);
		for (k = first; k < last; k++)
			for (j = 0; j < hcas; j++)
				path_set(&dev->hca[k].path[j],
					 path_word(&end[k], &end[j]));
		for (j = 0; j < hcas && last - first == 1; j++)
			path_set(&dev->hca[j].path[first],
				 path_word(&end[j], &end[first]));
	} while (load_seq_cst(&dev->port_changes) != before &&
		 ++tries < PATH_TRIES);
}

/* Also those of other ports: a process may have been killed before it set them.
 */
void paths_update(struct urxe_dev *dev)
{
	paths_set(dev, 0, dev_hcas(dev));
}

/*
 * Update the paths of node @k.  The caller has the device lock: if it is
 * killed, the next owner updates all.
 */
void paths_update_of(struct urxe_dev *dev, uint32_t k)
{
	if (k < dev_hcas(dev))
		paths_set(dev, k, k + 1);
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

/* The link of a port of a switch went up or down. */
static void switch_port_begin(struct urxe_dev *dev,
			      const struct urxe_link_end *e)
{
	const uint32_t s = (uint32_t)e->node - URXE_MAX_HCA;
	struct urxe_switch *sw;

	if (s >= dev_switches(dev) || e->port > URXE_SWITCH_PORTS)
		return;
	sw = &dev->sw[s];
	store_seq_cst(&sw->state[e->port],
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
 * Set the state of a device's port that follows from its link.  Another process
 * may change the link concurrently: repeat until they agree.
 */
static void port_follow_link(struct urxe_fabric *f, uint32_t k)
{
	const struct urxe_link_end own = { .node = (uint16_t)k, .port = 1 };
	const struct urxe_link_end peer = f->dev->hca[k].peer;
	struct urxe_hca *hca = &f->dev->hca[k];
	uint32_t tries = 0;
	bool down;

	do {
		down = end_is_down(f->dev, &own) || end_is_down(f->dev, &peer);
		if (down || load_seq_cst(&hca->port_state) == URXE_PORT_DOWN)
			fabric_set_port_state(f, k,
					      down ? URXE_PORT_DOWN :
						     port_state_up(f->dev, k));
	} while (down != (end_is_down(f->dev, &own) ||
			  end_is_down(f->dev, &peer)) &&
		 ++tries < PATH_TRIES);
}

static const struct {
	uint32_t set, clear;
} link_bits[] = {
	[FABRIC_LINK_DOWN] = { LINK_DOWN, LINK_STARTING },
	[FABRIC_LINK_STARTING] = { LINK_STARTING, LINK_DOWN },
	[FABRIC_LINK_UP] = { 0, LINK_DOWN | LINK_STARTING },
};

/* Set the bits of one end, and return what they were. */
static uint32_t end_set(struct urxe_dev *dev, const struct urxe_link_end *e,
			enum fabric_link_state state)
{
	_Atomic uint32_t *bits = end_bits(dev, e);
	uint32_t was = 0;

	if (bits) {
		was = fetch_or_seq_cst(bits, link_bits[state].set);
		fetch_and_seq_cst(bits, ~link_bits[state].clear);
	}
	return was & (LINK_DOWN | LINK_STARTING);
}

/*
 * 1 if the link had that state.  All that follows from it is stored in any
 * case, since a process may have been killed in between.
 */
static int link_set(struct urxe_fabric *f, const struct urxe_link_end end[2],
		    enum fabric_link_state state)
{
	const uint32_t was = end_set(f->dev, &end[0], state) |
			     end_set(f->dev, &end[1], state);
	const bool up = state != FABRIC_LINK_DOWN;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (end[i].node < dev_hcas(f->dev))
			port_follow_link(f, end[i].node);
		else if (!(was & LINK_DOWN) != up)
			switch_port_begin(f->dev, &end[i]);
	}
	ports_changed(f->dev);
	return was == link_bits[state].set;
}

/* The other end of a link: 0, or -EINVAL. */
static int link_peer(const struct urxe_dev *dev, const struct urxe_link_end *e,
		     struct urxe_link_end *peer)
{
	const uint32_t s = (uint32_t)e->node - URXE_MAX_HCA;

	if (e->node < dev_hcas(dev) && e->port == 1) {
		*peer = dev->hca[e->node].peer;
		return 0; /* a device's port also exists without links */
	}
	if (s >= dev_switches(dev) || !e->port ||
	    e->port > switch_ports(&dev->sw[s]))
		return -EINVAL;
	*peer = dev->sw[s].peer[e->port];
	return peer->node == NODE_NONE ? -EINVAL : 0;
}

void link_end_first(const struct urxe_fabric *f, struct urxe_link_end *e)
{
	struct urxe_link_end peer;

	if (!link_peer(f->dev, e, &peer) &&
	    (peer.node < e->node ||
	     (peer.node == e->node && peer.port < e->port)))
		*e = peer;
}

int fabric_set_link(struct urxe_fabric *f, struct urxe_link_end e,
		    enum fabric_link_state state)
{
	struct urxe_link_end end[2] = { e };
	int ret;

	if (e.node < URXE_MAX_HCA || e.port) {
		ret = link_peer(f->dev, &e, &end[1]);
		return ret ? ret : link_set(f, end, state);
	}
	ret = -EINVAL;
	for (e.port = 1; e.port <= URXE_SWITCH_PORTS; e.port++) {
		end[0] = e;
		if (link_peer(f->dev, &e, &end[1]))
			continue;
		if (!link_set(f, end, state))
			ret = 0;
		else if (ret)
			ret = 1;
	}
	return ret;
}

static void end_set_rate(struct urxe_dev *dev, const struct urxe_link_end *e,
			 uint32_t code)
{
	if (e->node >= dev_hcas(dev))
		return;
	store_relaxed(&dev->hca[e->node].rate, code);
	fetch_add_seq_cst(&dev->hca[e->node].subnet.gen, 1); /* for sysfs */
}

int fabric_set_rate(struct urxe_fabric *f, struct urxe_link_end e,
		    uint32_t rate)
{
	const uint16_t last = e.port ? e.port : URXE_SWITCH_PORTS;
	struct urxe_link_end peer;
	uint32_t code = 0;
	int ret = -EINVAL;

	if (rate && !rate_encode(rate * 10, &code))
		return -EINVAL;
	for (e.port = e.port ? e.port : 1; e.port <= last; e.port++) {
		if (link_peer(f->dev, &e, &peer))
			continue;
		end_set_rate(f->dev, &e, code);
		end_set_rate(f->dev, &peer, code);
		ret = 0;
	}
	ports_changed(f->dev);
	return ret;
}

int fabric_set_port(struct urxe_fabric *f, uint32_t k, bool up)
{
	const struct urxe_link_end e = { .node = (uint16_t)k, .port = 1 };

	return fabric_set_link(f, e, up ? FABRIC_LINK_UP : FABRIC_LINK_DOWN);
}

static bool link_is_initial(const _Atomic uint32_t *down)
{
	const uint32_t bits = load_acquire(down);

	return !(bits & LINK_DOWN) == !(bits & LINK_DOWN_FIRST) &&
	       !(bits & LINK_STARTING);
}

bool ports_are_initial(const struct urxe_dev *dev)
{
	uint32_t k, s, port;

	for (k = 0; k < dev_hcas(dev); k++)
		if (!link_is_initial(&dev->hca[k].down))
			return false;
	for (s = 0; s < dev_switches(dev); s++)
		for (port = 1; port <= URXE_SWITCH_PORTS; port++)
			if (!link_is_initial(&dev->sw[s].down[port]))
				return false;
	return dev->sm_external || subnet_is_initial(dev);
}
