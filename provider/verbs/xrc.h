/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC domains and shared target QPs. */
#ifndef URXE_XRC_H
#define URXE_XRC_H

#include "engine/urxe.h"

struct ibv_xrcd *urxe_open_xrcd(struct ibv_context *ctx,
				struct ibv_xrcd_init_attr *attr);
int urxe_close_xrcd(struct ibv_xrcd *xrcd);

/*
 * A further handle of an XRC target QP, of this or of another process.  The
 * QP ends with the last handle, or with the context that created it.
 */
struct ibv_qp *urxe_open_qp(struct ibv_context *ctx,
			    struct ibv_qp_open_attr *attr);
void xrc_close_qp(struct urxe_qp *qp);
/* Give up a handle: true if it was the QP's last (or the QP no target). */
bool xrc_put_handle(struct urxe_qp *qp);
/* What others may have set, in query_qp of an opened QP. */
void xrc_query_qp(const struct urxe_qp *qp, struct ibv_qp_attr *attr);

#endif
