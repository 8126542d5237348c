/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An opened device, as libibverbs has it: core's own part follows ours. */
#pragma once

#include "abi/pabi/pabi.h"
#include "engine/context.h"

struct urxe_pd;

struct urxe_vcontext {
	struct urxe_context ctx;
	struct urxe_pd *pds; /* pd.h; under ctx.lock */
	struct urxe_vcontext *next; /* all of this process */
	struct ibv_context *ibv;
	uint16_t xrcd_opens[URXE_MAX_XRCD]; /* under the device lock */
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
