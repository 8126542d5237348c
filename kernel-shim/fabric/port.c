// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The port's state and who is told of it. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include "fabric.h"

/* As core reads it from the async event descriptor. */
struct port_event {
	uint64_t port;
	uint32_t type, zero;
};

static void port_event_send(struct urxe_fabric *f, uint32_t slot,
			    const struct port_event *event)
{
	struct urxe_ctx_slot *c = &f->dev->ctx[slot];
	uint32_t gen = atomic_load_explicit(&c->gen, memory_order_relaxed);
	struct urxe_arena *a;
	uint32_t number;
	int fd, ev;

	if (arena_map_peer(f, slot, gen, &a, &fd))
		return;
	number = atomic_load_explicit(&a->async_fifo, memory_order_acquire);
	ev = number ? fifo_open_writer(f, slot, gen, number - 1) : -1;
	if (ev >= 0) {
		/* a reader that far behind has lost more than this */
		if (write(ev, event, sizeof(*event)) < 0)
			fabric_fail(EAGAIN, "context %u.%u reads no events",
				    slot, gen);
		close(ev);
	}
	arena_unmap(a);
	close(fd);
}

int fabric_set_port(struct urxe_fabric *f, bool up)
{
	struct port_event event = {
		.port = 1,
		.type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR,
	};
	uint32_t state = up ? URXE_PORT_ACTIVE : URXE_PORT_DOWN;
	uint32_t slot;
	int same;

	fabric_reap(f);
	fabric_lock(f);
	same = atomic_exchange_explicit(&f->dev->port_state, state,
					memory_order_acq_rel) == state;
	for (slot = 0; !same && slot < URXE_MAX_CTX; slot++)
		if (atomic_load_explicit(&f->dev->ctx[slot].state,
					 memory_order_relaxed) == URXE_CTX_LIVE)
			port_event_send(f, slot, &event);
	fabric_unlock(f);
	return same;
}
