/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Detection of connections whose two QPs have attributes that do not match:
 * path_mtu, and max_rd_atomic against max_dest_rd_atomic.
 */
#pragma once

#include "shadow.h"

/*
 * Compare an RC or UC QP with the peer's, once for each connection, as soon
 * as the peer's QP is known.  max_rd_atomic is compared when a READ or an
 * atomic was posted.  Called after each post to the send queue and before the
 * QP is destroyed, without referee_lock(), which it takes.
 */
void pair_check(struct shadow_qp *q);
