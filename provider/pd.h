/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Protection domains. */
#ifndef URXE_PD_H
#define URXE_PD_H

#include "urxe.h"

struct ibv_pd *urxe_alloc_pd(struct ibv_context *ctx);
/* EBUSY while something is in it. */
int urxe_dealloc_pd(struct ibv_pd *pd);

/* An object came into the PD, or left it. */
void pd_get(struct urxe_pd *pd);
void pd_put(struct urxe_pd *pd);

#endif
