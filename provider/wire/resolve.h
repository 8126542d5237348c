/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Next-hop resolution (ARP, NDP), as a kernel device does it in ibv_modify_qp
 * and ibv_create_ah.  Without it the first packets would wait for the
 * resolution.  If the query were lost, an RC QP would exhaust its retries
 * before the kernel repeats the query.  Callers: wire_modify_qp() and
 * wire_create_ah(), without a lock.
 */
#pragma once

#include <infiniband/verbs.h>

#include "engine/core/context.h"

/*
 * Ensure that the link-layer address of the next hop to attr's destination is
 * known.  Blocks as long as the kernel queries, about 3 s.  what: the name of
 * the verb, for the message.
 *
 * Returns 0 if it is known or not needed, ETIMEDOUT if there was no reply,
 * ENETUNREACH or EHOSTUNREACH if there is no route.
 */
int resolve_neighbour(struct urxe_context *ctx, const struct ibv_ah_attr *attr,
		      const char *what);
