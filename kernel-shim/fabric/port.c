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
	uint32_t gen = load_relaxed(&c->gen);
	struct urxe_arena *a;
	uint32_t number;
	int fd, ev;

	if (arena_map_peer(f, slot, gen, &a, &fd))
		return;
	number = load_acquire(&a->async_fifo);
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
	same = exchange_acq_rel(&f->dev->port_state, state) == state;
	for (slot = 0; !same && slot < URXE_MAX_CTX; slot++)
		if (load_relaxed(&f->dev->ctx[slot].state) == URXE_CTX_LIVE)
			port_event_send(f, slot, &event);
	fabric_unlock(f);
	return same;
}
