// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* On-demand paging: registration, ibv_advise_mr. */
#include <errno.h>

#include "engine/mem/mem.h"
#include "engine/mr/odp.h"
#include "engine/mem/vma.h"
#include "odp.h"
#include "verbs/pd.h"
#include "verbs/verbs.h"

int odp_describe(struct urxe_key *desc)
{
	bool implicit = desc->length == SIZE_MAX;

	if (desc->access & URXE_ACCESS_FLUSH_PERSISTENT)
		return fabric_fail(
			EINVAL,
			"IBV_ACCESS_FLUSH_PERSISTENT needs a shared mapping of one file, not IBV_ACCESS_ON_DEMAND");
	if (implicit && desc->iova)
		return fabric_fail(EINVAL,
				   "an implicit MR must start at address 0");
	/* ibv_reg_mr(3): only an explicit MR, and only of huge pages */
	if (desc->access & IBV_ACCESS_HUGETLB &&
	    (implicit || !vma_huge(desc->va, desc->length)))
		return fabric_fail(
			EINVAL,
			"IBV_ACCESS_HUGETLB, but not all of the range is huge pages");
	/* SHARED: the mappings are not inspected, and may be shared */
	desc->flags |= URXE_MR_ODP | URXE_MR_SHARED;
	return 0;
}

/*
 * Find the on-demand MR that @sge names, and return its entry in *@out.  0,
 * or an errno value of ibv_advise_mr(3).
 */
static int odp_find(struct urxe_pd *pd, const struct ibv_sge *sge,
		    const struct urxe_key **out)
{
	struct urxe_arena *a = pd->ctx->arena;
	uint32_t i = URXE_KEY_INDEX(sge->lkey);
	const struct urxe_key *k = &a->key[i];
	uint64_t live = 0;

	if (i < load_acquire(&a->key_high))
		live = load_acquire(&k->live);
	if (!live || URXE_KEY_CTX(sge->lkey) != pd->ctx->slot)
		return EFAULT;
	if (live != URXE_MR_LIVE(sge->lkey))
		return ENOENT;
	if (k->flags & URXE_MR_IS_MW || !(k->flags & URXE_MR_ODP))
		return EINVAL;
	if (k->pd != pd->index)
		return EPERM;
	if (sge->addr < k->iova || sge->length > k->length ||
	    sge->addr - k->iova > k->length - sge->length)
		return EFAULT;
	*out = k;
	return 0;
}

/* Prefetch one SGE.  errno value */
static int odp_advise(struct urxe_pd *pd, unsigned int advice,
		      const struct ibv_sge *sge)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const struct urxe_key *k;
	struct vma file;
	uint64_t va;
	int ret;

	ret = odp_find(pd, sge, &k);
	if (ret)
		return ret;
	if (write && !(k->access & IBV_ACCESS_LOCAL_WRITE))
		return EPERM;
	if (!mem_is_mine(pd->ctx->self, k))
		return 0; /* pages of another process: the hint is ignored */
	va = k->va + (sge->addr - k->iova);
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -vma_check(va, sge->length, false, &file);
	return -odp_populate(va, sge->length, write);
}

/* Prefetch synchronously, with and without IBV_ADVISE_MR_FLAG_FLUSH. */
int urxe_advise_mr(struct ibv_pd *ibpd, enum ib_uverbs_advise_mr_advice advice,
		   uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sge)
{
	struct urxe_pd *pd = pd_find(ibpd);
	uint32_t i;
	int ret = 0;

	if ((unsigned int)advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return ENOTSUP;
	if (!pd || flags & ~IBV_ADVISE_MR_FLAG_FLUSH || !num_sge || !sg_list)
		return EINVAL;
	for (i = 0; !ret && i < num_sge; i++)
		ret = odp_advise(pd, advice, &sg_list[i]);
	return ret;
}
