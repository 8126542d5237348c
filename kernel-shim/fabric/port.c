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

/* Repetitions while other processes change ports */
#define PATH_TRIES 100

/* What the paths of a port depend on. */
struct port_view {
	uint32_t state, gen;
};

static void ports_get(const struct urxe_dev *dev,
		      struct port_view view[URXE_MAX_HCA])
{
	uint32_t k;

	memset(view, 0, URXE_MAX_HCA * sizeof(*view));
	for (k = 0; k < dev_hcas(dev); k++) {
		view[k].state = load_seq_cst(&dev->hca[k].port_state);
		view[k].gen = load_seq_cst(&dev->hca[k].subnet.gen);
	}
}

static uint32_t path_word(const struct urxe_dev *dev,
			  const struct port_view *view, uint32_t k, uint32_t j)
{
	enum urxe_port_state state = URXE_PORT_DOWN;

	if (dev->hca[k].infiniband != dev->hca[j].infiniband)
		return URXE_PORT_NOP;
	if (view[k].state == URXE_PORT_ACTIVE &&
	    view[j].state == URXE_PORT_ACTIVE)
		state = URXE_PORT_ACTIVE;
	return URXE_PATH(state, view[k].gen + view[j].gen);
}

/*
 * Another process may change a port, and store the paths before this one
 * does.  So this is repeated until the ports are still the same after the
 * store (all seq_cst): the last store has their final values.  All paths are
 * stored, since a process may have been killed before it stored its own.
 */
void paths_update(struct urxe_dev *dev)
{
	struct port_view before[URXE_MAX_HCA], after[URXE_MAX_HCA];
	uint32_t tries = 0, k, j;

	do {
		ports_get(dev, before);
		for (k = 0; k < dev_hcas(dev); k++)
			for (j = 0; j < dev_hcas(dev); j++)
				store_seq_cst(&dev->path[k][j],
					      path_word(dev, before, k, j));
		ports_get(dev, after);
	} while (memcmp(before, after, sizeof(before)) && ++tries < PATH_TRIES);
}

/* The state of a port whose link comes up. */
static uint32_t port_state_up(const struct urxe_dev *dev, uint32_t k)
{
	return dev->hca[k].infiniband && dev->sm_external ? URXE_PORT_INIT :
							    URXE_PORT_ACTIVE;
}

int fabric_set_port_state(struct urxe_fabric *f, uint32_t k, uint32_t state)
{
	struct urxe_hca *hca = &f->dev->hca[k];
	uint32_t was;

	fabric_reap(f);
	was = exchange_seq_cst(&hca->port_state, state);
	paths_update(f->dev);
	if (was == state)
		return 1;
	if (hca->infiniband &&
	    (was == URXE_PORT_DOWN || state == URXE_PORT_DOWN)) {
		/* the other end of the link, a port of the switch */
		store_seq_cst(&f->dev->ib_switch.state[k + 1],
			      port_state_up(f->dev, k));
		store_relaxed(&f->dev->ib_switch.changed, 1);
	}
	if (state == URXE_PORT_DOWN)
		fetch_add_relaxed(&hca->counter[URXE_CNT_LINK_DOWNED], 1);
	if (state == URXE_PORT_ACTIVE)
		fabric_port_event(f, k, IBV_EVENT_PORT_ACTIVE);
	else if (state == URXE_PORT_DOWN)
		fabric_port_event(f, k, IBV_EVENT_PORT_ERR);
	return 0;
}

int fabric_set_port(struct urxe_fabric *f, uint32_t k, bool up)
{
	const uint32_t now = load_acquire(&f->dev->hca[k].port_state);

	if (up && now != URXE_PORT_DOWN)
		return 1;
	return fabric_set_port_state(
		f, k, up ? port_state_up(f->dev, k) : URXE_PORT_DOWN);
}
