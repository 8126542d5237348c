/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the host's own program does, meanwhile. */
#pragma once

#include "peer.h"

void local_send(const struct record *r);
void local_receive(const struct record *r);
void local_window(const struct record *r); /* bind, invalidate */
void local_region(const struct record *r); /* deregister, register */
void local_state(const struct record *r);
void local_wait(const struct record *r);
void local_port(const struct record *r); /* and the group */
