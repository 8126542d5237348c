/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The neighbour on the way to another host, whose Ethernet address is known
 * before anything is sent there: a kernel resolves it for its devices in
 * ibv_modify_qp and ibv_create_ah.  The first packets would wait behind a
 * question, and if that is lost RC gives up before it is asked again.
 */
#pragma once

#include "engine/context.h"

/*
 * It is known, or not needed: 0.  Asks, and waits for the answer as long as the
 * kernel asks; ETIMEDOUT: there was none.  ENETUNREACH, EHOSTUNREACH: there is
 * no way.  what: the verb.
 */
int resolve_neighbour(const struct urxe_context *ctx,
		      const struct ibv_ah_attr *attr, const char *what);
