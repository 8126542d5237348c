// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The QP-number directory.  A number's low 13 bits are its slot in the
 * directory and in its context's QP table; the high 11 count how often the
 * slot was used, so that a stale number meets nobody for a long time.
 */
#include <errno.h>

#include "fabric.h"

#define GEN_BITS 11

int qpn_alloc(struct urxe_fabric *f, uint32_t slot, uint32_t gen, uint32_t *qpn)
{
	struct urxe_dev *dev = f->dev;
	int ret = -ENOMEM;
	uint32_t i;

	fabric_lock(f);
	/* 0 and 1 belong to the management QPs */
	for (i = 2; i < URXE_MAX_QP; i++) {
		if (load_relaxed(&dev->qp[i]))
			continue;
		dev->qp_gen[i] = (dev->qp_gen[i] + 1) & ((1 << GEN_BITS) - 1);
		*qpn = (uint32_t)dev->qp_gen[i] << 13 | i;
		if (i >= load_relaxed(&dev->qp_high))
			store_relaxed(&dev->qp_high, i + 1);
		presence_clear(&dev->guard[i].requester);
		store_release(&dev->qp[i], *qpn | (uint64_t)slot << 24 |
						   (uint64_t)gen << 33);
		ret = 0;
		break;
	}
	fabric_unlock(f);
	return ret;
}

void qpn_free(struct urxe_fabric *f, uint32_t qpn)
{
	store_release(&f->dev->qp[qpn_index(qpn)], 0);
}

bool qpn_lookup(const struct urxe_dev *dev, uint32_t qpn, uint32_t *slot,
		uint32_t *gen)
{
	uint64_t e = load_acquire(&dev->qp[qpn_index(qpn)]);

	if ((e & URXE_QPN_MASK) != qpn || !e)
		return false;
	*slot = e >> 24 & (URXE_MAX_CTX - 1);
	*gen = (uint32_t)(e >> 33);
	return true;
}
