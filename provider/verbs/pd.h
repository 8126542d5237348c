/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Protection domains. */
#pragma once

#include <infiniband/verbs.h>

#include "engine/context.h"

struct urxe_pd {
	struct ibv_pd pd;
	struct urxe_context *ctx;
	/* of the PD that this is a handle of; pd.handle is the program's */
	uint32_t index, live;
	struct urxe_parent *parent; /* of a parent domain; parent_domain.h */
	_Atomic uint32_t users; /* objects made with this handle, and it */
};

static inline struct urxe_pd *to_upd(struct ibv_pd *pd)
{
	return container_of(pd, struct urxe_pd, pd);
}

/* Is it there, or did another process destroy it, or was pd.handle spoiled? */
bool pd_exists(const struct urxe_pd *pd);

/* Keep this handle's memory; what an import of an object does. */
void pd_hold(struct urxe_pd *pd);
void pd_release(struct urxe_pd *pd);
/* An object came into the PD with this handle, or left it. */
void pd_get(struct urxe_pd *pd);
void pd_put(struct urxe_pd *pd);
