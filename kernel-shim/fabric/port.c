// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * State of the ports and of the paths between them, and port events.
 * fabric_set_port() is called by urxe port and by fault injection,
 * fabric_port_event() also by fabric_refresh_gids().
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include "fabric.h"
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

/*
 * Store the state of the paths between port k and each port.  Another process
 * may change the other port and store its result before this one.  It loads
 * the states after it stored its own (seq_cst), and repeats this until they do
 * not change: the last store has the final states.
 */
static void port_set_paths(struct urxe_dev *dev, uint32_t k)
{
	const struct urxe_hca *own = &dev->hca[k], *other;
	uint32_t j, a, b, state;

	for (j = 0; j < dev_hcas(dev); j++) {
		other = &dev->hca[j];
		do {
			a = load_seq_cst(&own->port_state);
			b = load_seq_cst(&other->port_state);
			state = a == URXE_PORT_ACTIVE ? b : URXE_PORT_DOWN;
			store_seq_cst(&dev->path[k][j], state);
			store_seq_cst(&dev->path[j][k], state);
		} while (a != load_seq_cst(&own->port_state) ||
			 b != load_seq_cst(&other->port_state));
	}
}

int fabric_set_port(struct urxe_fabric *f, uint32_t k, bool up)
{
	uint32_t event = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
	uint32_t state = up ? URXE_PORT_ACTIVE : URXE_PORT_DOWN;
	struct urxe_hca *hca = &f->dev->hca[k];
	bool same;

	fabric_reap(f);
	same = exchange_seq_cst(&hca->port_state, state) == state;
	port_set_paths(f->dev, k);
	if (!same && !up)
		fetch_add_relaxed(&hca->counter[URXE_CNT_LINK_DOWNED], 1);
	if (!same)
		fabric_port_event(f, k, event);
	return same;
}
