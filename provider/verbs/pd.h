/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Protection domains. */
#pragma once

#include <infiniband/verbs.h>

#include "engine/context.h"

struct urxe_pd {
	struct ibv_pd pd;
	struct urxe_context *ctx;
	struct urxe_pd *next; /* of the context's list; under ctx->lock */
	/* of the PD that this is a handle of; pd.handle is the program's */
	uint32_t index, live;
	struct urxe_parent *parent; /* of a parent domain; parent_domain.h */
	_Atomic uint32_t users; /* objects made with this handle, and it */
};

/*
 * Return the PD that the program means by @ibpd, or NULL if there is none: the
 * PD was destroyed, perhaps by another process, or @ibpd->handle or ->context
 * was overwritten.  Only these two members are read, so that @ibpd may be a
 * copy of what ibv_alloc_pd returned, as it may be for a driver in the kernel.
 */
struct urxe_pd *pd_find(const struct ibv_pd *ibpd);
/* Is @pd still allocated?  Another process may have destroyed it. */
bool pd_exists(const struct urxe_pd *pd);

/* Add a handle to the list in which pd_find() looks, and remove it. */
void pd_link(struct urxe_pd *pd);
void pd_unlink(struct urxe_pd *pd);

/* Keep this handle's memory; what an import of an object does. */
void pd_hold(struct urxe_pd *pd);
void pd_release(struct urxe_pd *pd);
/* An object came into the PD with this handle, or left it. */
void pd_get(struct urxe_pd *pd);
void pd_put(struct urxe_pd *pd);
