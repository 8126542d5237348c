/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Actions of the program on the host under test, one for each record. */
#pragma once

#include "peer.h"

void local_send(const struct record *r);
void local_receive(const struct record *r);
void local_window(const struct record *r); /* bind or invalidate it */
void local_region(const struct record *r); /* deregister, or register again */
void local_state(const struct record *r);
void local_wait(const struct record *r);
void local_port(const struct record *r); /* port state, multicast group */
