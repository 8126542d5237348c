// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Translation of SGEs to addresses of this process; span.h. */
#include "engine/mem/mem.h"
#include "span.h"

uint64_t span_address(struct urxe_peer *self, const struct urxe_key *k,
		      uint64_t addr)
{
	uint64_t at = k->va + (addr - k->iova);

	if (k->kind == URXE_MEM_DM)
		return self->fabric->dm ? (uintptr_t)self->fabric->dm + at : 0;
	return mem_is_mine(self, k) ? at : 0;
}

bool spans_resolve(struct spans *s, struct urxe_context *ctx, uint32_t pd,
		   const struct ibv_sge *sge, int n)
{
	const struct urxe_key *k;
	struct span *to;
	int i;

	s->n = 0;
	s->len = 0;
	if (n > URXE_MAX_SGE)
		return false;
	for (i = 0; i < n; i++) {
		if (!sge[i].length)
			continue;
		k = mem_lookup(ctx->self, sge[i].lkey, pd, sge[i].addr,
			       sge[i].length, 0);
		if (!k)
			return false;
		if (k->kind == URXE_MEM_NULL)
			continue;
		to = &s->span[s->n];
		to->at = span_address(ctx->self, k, sge[i].addr);
		if (!to->at)
			return false;
		to->end = to->at + sge[i].length;
		s->n++;
		s->len += sge[i].length;
	}
	return true;
}

void spans_of_program(struct spans *s, const struct ibv_sge *sge, int n)
{
	int i;

	s->n = 0;
	s->len = 0;
	for (i = 0; i < n && i < URXE_MAX_SGE; i++) {
		if (!sge[i].length)
			continue;
		s->span[s->n++] = (struct span){ sge[i].addr,
						 sge[i].addr + sge[i].length };
		s->len += sge[i].length;
	}
}

uint64_t spans_address(const struct spans *s, uint64_t offset)
{
	uint64_t len;
	int i;

	for (i = 0; i < s->n; i++) {
		len = s->span[i].end - s->span[i].at;
		if (offset < len)
			return s->span[i].at + offset;
		offset -= len;
	}
	return 0;
}
