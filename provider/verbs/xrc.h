/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC domains and shared target QPs. */
#pragma once

#include "qp.h"

struct urxe_xrcd {
	struct pabi_xrcd vxrcd;
	struct urxe_context *ctx;
	uint32_t index;
	int fd; /* a duplicate of what names the domain; -1: private */
	_Atomic uint32_t refs; /* QPs and SRQs of this process */
};

static inline struct urxe_xrcd *to_uxrcd(struct ibv_xrcd *xrcd)
{
	return container_of(xrcd, struct urxe_xrcd, vxrcd.xrcd);
}

void xrc_close_qp(struct urxe_vqp *qp);
/* Give up a handle: true if it was the QP's last (or the QP no target). */
bool xrc_put_handle(struct urxe_vqp *qp);
/* What others may have set, in query_qp of an opened QP. */
void xrc_query_qp(const struct urxe_vqp *qp, struct ibv_qp_attr *attr);
