/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Protection domains. */
#pragma once

#include <infiniband/verbs.h>

#include "engine/core/context.h"

struct urxe_pd {
	struct ibv_pd pd;
	struct urxe_context *ctx;
	struct urxe_pd *next; /* in the context's list; under ctx->lock */
	/* arena entry and its count; the program can write pd.handle */
	uint32_t index, live;
	struct urxe_parent *parent; /* NULL: not a parent domain */
	_Atomic uint32_t users; /* objects created with this handle, plus 1 */
};

/*
 * Return the handle that @ibpd denotes, or NULL if there is none: the PD was
 * destroyed, perhaps by another process, or @ibpd->handle or ->context was
 * overwritten.  Only these two members are read, so that @ibpd may be a copy
 * of what ibv_alloc_pd returned; kernel drivers accept a copy as well.
 */
struct urxe_pd *pd_find(const struct ibv_pd *ibpd);
/* Return whether @pd is still allocated; another process may destroy it. */
bool pd_exists(const struct urxe_pd *pd);

/* Add a handle to the list that pd_find() searches, or remove it. */
void pd_link(struct urxe_pd *pd);
void pd_unlink(struct urxe_pd *pd);

/*
 * Acquire and release a reference to the handle's memory, without a reference
 * to the PD: for imported objects.
 */
void pd_hold(struct urxe_pd *pd);
void pd_release(struct urxe_pd *pd);
/*
 * Count an object that was created in the PD with this handle, or destroyed.
 */
void pd_get(struct urxe_pd *pd);
void pd_put(struct urxe_pd *pd);
