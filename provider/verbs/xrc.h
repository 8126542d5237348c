/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC domains and shared target QPs. */
#ifndef URXE_XRC_H
#define URXE_XRC_H

#include "qp.h"

struct urxe_xrcd {
	struct pabi_xrcd vxrcd;
	struct urxe_context *ctx;
	uint32_t index;
	_Atomic uint32_t refs; /* QPs and SRQs of this process */
};

static inline struct urxe_xrcd *to_uxrcd(struct ibv_xrcd *xrcd)
{
	return container_of(xrcd, struct urxe_xrcd, vxrcd.xrcd);
}

struct ibv_xrcd *urxe_open_xrcd(struct ibv_context *ctx,
				struct ibv_xrcd_init_attr *attr);
int urxe_close_xrcd(struct ibv_xrcd *xrcd);

/*
 * A further handle of an XRC target QP, of this or of another process.  The
 * QP ends with the last handle, or with the context that created it.
 */
struct ibv_qp *urxe_open_qp(struct ibv_context *ctx,
			    struct ibv_qp_open_attr *attr);
void xrc_close_qp(struct urxe_vqp *qp);
/* Give up a handle: true if it was the QP's last (or the QP no target). */
bool xrc_put_handle(struct urxe_vqp *qp);
/* What others may have set, in query_qp of an opened QP. */
void xrc_query_qp(const struct urxe_vqp *qp, struct ibv_qp_attr *attr);

#endif
