/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory windows, as libibverbs has them. */
#ifndef URXE_MW_H
#define URXE_MW_H

#include <infiniband/verbs.h>

#include "engine/context.h"

struct urxe_mw {
	struct ibv_mw mw;
	struct urxe_context *ctx;
	struct urxe_key *key;
};

static inline struct urxe_mw *to_umw(struct ibv_mw *mw)
{
	return container_of(mw, struct urxe_mw, mw);
}

struct ibv_mw *urxe_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int urxe_dealloc_mw(struct ibv_mw *mw);
int urxe_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		 struct ibv_mw_bind *bind);

#endif
