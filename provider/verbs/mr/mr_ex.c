// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_reg_mr_ex (libibverbs 59 and later): ibv_reg_mr or ibv_reg_dmabuf_mr,
 * depending on comp_mask.
 */
#include <errno.h>

#include "engine/core/log.h"
#include "mr_ex.h"
#include "verbs/verbs.h"

struct ibv_mr *urxe_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *init)
{
	const struct mr_attr *a = (const void *)init;

	if (a->given & ~(uint64_t)GIVEN_ALL)
		return urxe_fail(-EOPNOTSUPP,
				 "ibv_reg_mr_ex: unknown bits in comp_mask");
	switch (a->given) {
	case GIVEN_ADDR:
		return urxe_reg_mr(pd, a->addr, a->length, (uintptr_t)a->addr,
				   a->access);
	case GIVEN_ADDR | GIVEN_IOVA:
		return urxe_reg_mr(pd, a->addr, a->length, a->iova, a->access);
	case GIVEN_FD | GIVEN_FD_OFFSET | GIVEN_IOVA:
		return urxe_reg_dmabuf_mr(pd, a->fd_offset, a->length, a->iova,
					  a->fd, a->access);
	}
	return urxe_fail(
		-EINVAL,
		"ibv_reg_mr_ex: comp_mask must name an address, or a descriptor with offset and iova");
}
