/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where this process sends from: a socket for each address of its own, opened
 * when it is first needed, and packets on their way to it.  All QPs of the
 * process use it, one after the other.
 */
#pragma once

#include "fabric/fabric.h"
#include "wire/sender.h"

struct wire_port;

/* That of an address, locked; NULL and -errno in *err: there is none. */
struct wire_port *port_begin(const uint8_t sgid[16], int *err);
/* As wire_sender_add(); those that are there are sent first, if it is full. */
uint8_t *port_add(struct wire_port *p, const struct wire_path *path,
		  const struct wire_packet *packet);
/* Not the one that was added last, after all. */
void port_drop(struct wire_port *p);
/*
 * What was added goes out and is counted in f, and the port is unlocked.  0, or
 * -errno of the first packet that did not go.
 */
int port_end(struct wire_port *p, struct urxe_fabric *f);
/* An empty datagram, which is no packet, to that address, from itself: whoever
 * receives there looks up.  0 or -errno */
int port_ring(const uint8_t own[16]);

/* In the child of a fork: it opens its own, and another thread of its parent
 * may have had the locks. */
void port_after_fork(void);
