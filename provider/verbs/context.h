/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An opened device as libibverbs sees it.  libibverbs allocates this struct
 * and its own verbs_context, whose size depends on its release, in one block:
 *
 *	struct urxe_vcontext | verbs_context, which ends with ibv_context
 */
#pragma once

#include "abi/pabi/pabi.h"
#include "engine/core/context.h"

struct urxe_pd;

struct urxe_vcontext {
	struct urxe_context ctx;
	struct urxe_pd *pds; /* pd.h; under ctx.lock */
	struct urxe_vcontext *next; /* list of this process; abi/context.c */
	struct ibv_context *ibv;
	/* open handles of each XRC domain; under the device lock */
	uint16_t xrcd_opens[URXE_MAX_XRCD];
};

static inline struct urxe_vcontext *to_vctx(struct ibv_context *ibv)
{
	return (struct urxe_vcontext *)((char *)pabi_to_vctx(ibv) -
					sizeof(struct urxe_vcontext));
}

static inline struct urxe_context *to_uctx(struct ibv_context *ibv)
{
	return &to_vctx(ibv)->ctx;
}

static inline struct ibv_context *to_ibv(struct urxe_context *ctx)
{
	return container_of(ctx, struct urxe_vcontext, ctx)->ibv;
}
