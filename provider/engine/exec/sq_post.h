/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* ibv_post_send: the fast path (direct.h), then the send queue. */
#pragma once

#include "engine/qp/qp.h"

/* Takes qp->lock.  0, or an errno value and *bad. */
int sq_post(struct urxe_qp *qp, struct ibv_send_wr *wr,
	    struct ibv_send_wr **bad);
