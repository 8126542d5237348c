/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Address ranges of this process, and the translation of the SGEs of a WR to
 * them.
 */
#pragma once

#include <infiniband/verbs.h>

#include "engine/core/context.h"
#include "shared/layout.h"

struct urxe_peer;

struct span {
	uint64_t at, end; /* [at, end) */
};

/* The ranges of one WR, in the order of its SGEs. */
struct spans {
	int n;
	uint64_t len; /* sum of the lengths */
	struct span span[URXE_MAX_SGE];
};

/*
 * Translate @n SGEs of PD @pd.  False: an lkey is not valid for its range,
 * the memory belongs to another process, or there are more than URXE_MAX_SGE.
 * Device memory is at the address where this process has mapped it.  SGEs of
 * a null MR, and empty ones, are left out.
 */
bool spans_resolve(struct spans *s, struct urxe_context *ctx, uint32_t pd,
		   const struct ibv_sge *sge, int n);
/* The same for SGEs of inline data, which have addresses of the program. */
void spans_of_program(struct spans *s, const struct ibv_sge *sge, int n);
/*
 * Return the address in this process of address @addr of the key @k, or 0 if
 * the memory belongs to another process or is not mapped.
 */
uint64_t span_address(struct urxe_peer *self, const struct urxe_key *k,
		      uint64_t addr);
/* Return the address of byte @offset of the ranges, or 0 beyond the end. */
uint64_t spans_address(const struct spans *s, uint64_t offset);

/* Do the two ranges overlap? */
static inline bool span_overlaps(const struct span *a, const struct span *b)
{
	return a->at < b->end && b->at < a->end;
}
