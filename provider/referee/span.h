/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Bytes of this process, by address, however a work request names them. */
#pragma once

#include <infiniband/verbs.h>

#include "engine/context.h"
#include "shared/layout.h"

struct urxe_peer;

struct span {
	uint64_t at, end;
};

struct spans {
	int n;
	uint64_t len; /* of all */
	struct span span[URXE_MAX_SGE];
};

/*
 * What n SGEs of protection domain pd mean.  False: nobody can say, be it that
 * a key does not hold or that the bytes are another process's.  Device memory
 * is where this process has it mapped; what a null MR swallows is left out.
 */
bool spans_resolve(struct spans *s, struct urxe_context *ctx, uint32_t pd,
		   const struct ibv_sge *sge, int n);
/* What SGEs of inline data mean: addresses of the program. */
void spans_of_program(struct spans *s, const struct ibv_sge *sge, int n);
/* Where byte addr of k's memory is in this process; 0: it is not. */
uint64_t span_address(struct urxe_peer *self, const struct urxe_key *k,
		      uint64_t addr);
/* The address of byte `offset` of them. */
uint64_t spans_address(const struct spans *s, uint64_t offset);

static inline bool span_meets(const struct span *a, const struct span *b)
{
	return a->at < b->end && b->at < a->end;
}
