/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC domains and shared target QPs. */
#pragma once

#include "qp.h"

struct urxe_xrcd {
	struct pabi_xrcd vxrcd;
	struct urxe_context *ctx;
	uint32_t index;
	int fd; /* duplicate of the file that names the domain; -1: private */
	_Atomic uint32_t refs; /* QPs and SRQs of this process */
};

static inline struct urxe_xrcd *to_uxrcd(struct ibv_xrcd *xrcd)
{
	return container_of(xrcd, struct urxe_xrcd, vxrcd.xrcd);
}

/* Close a handle that ibv_open_qp created, and free it. */
void xrc_close_qp(struct urxe_vqp *qp);
/*
 * Remove a handle of the QP.  True if it was the last one, or if the QP is
 * not an XRC target: the caller destroys the QP.
 */
bool xrc_put_handle(struct urxe_vqp *qp);
/* Set in @attr what other handles may have set; for ibv_query_qp. */
void xrc_query_qp(const struct urxe_vqp *qp, struct ibv_qp_attr *attr);
