// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The QPN directory, dev->qp[]: which context owns a QP number.
 *
 * A QPN is an index in the directory and, in its high bits, a use count of
 * that index (qp_gen).  A stale QPN therefore does not match a new QP.
 * Entries are made under the device lock; lookups take no lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "fabric.h"

#define QPN_FIRST 2 /* QPs 0 and 1 are the management QPs: SMI and GSI */

/*
 * The high bits of an entry's next QPN.  If the wire is used (URXE_WIRE), the
 * first value is random.  Other hosts may still have connections to QPNs of a
 * previous fabric of this host and would take a new QP for the old one.
 */
static uint16_t next_use(uint16_t last)
{
	uint16_t any;

	if (!last && getenv("URXE_WIRE") &&
	    getrandom(&any, sizeof(any), GRND_NONBLOCK) == sizeof(any))
		last = any;
	return (last + 1) % URXE_QPN_USES;
}

int qpn_alloc(struct urxe_fabric *f, uint32_t slot, uint32_t gen, uint32_t *qpn)
{
	struct urxe_dev *dev = f->dev;
	uint32_t i, n, from;
	int ret;

	/* The first page fault occurs here, not while the lock is held. */
	from = load_relaxed(&dev->qp_low) % URXE_MAX_QP;
	load_relaxed(&dev->qp[from]);
	ret = fabric_lock(f);
	if (ret)
		return ret;
	ret = -ENOMEM;
	from = load_relaxed(&dev->qp_low);
	for (n = 0; n < URXE_MAX_QP; n++) {
		i = (from + n) % URXE_MAX_QP;
		if (i < QPN_FIRST || load_relaxed(&dev->qp[i]))
			continue;
		store_relaxed(&dev->qp_low, i + 1);
		dev->qp_gen[i] = next_use(dev->qp_gen[i]);
		*qpn = URXE_QPN(i, dev->qp_gen[i]);
		if (i >= load_relaxed(&dev->qp_high))
			store_seq_cst(&dev->qp_high, i + 1);
		presence_clear(&dev->guard[i].requester);
		/*
		 * seq_cst, as is qp_high: pairs with the loads of destroyers
		 * that scan the guards (engine/run/quiesce.c, guard.h)
		 */
		store_seq_cst(&dev->qp[i], URXE_DIR(*qpn, slot, gen));
		ret = 0;
		break;
	}
	fabric_unlock(f);
	return ret;
}

void qpn_free(struct urxe_fabric *f, uint32_t qpn)
{
	const uint32_t i = qpn_index(qpn);

	store_release(&f->dev->qp[i], 0);
	if (i < load_relaxed(&f->dev->qp_low))
		store_relaxed(&f->dev->qp_low, i);
}

bool qpn_lookup(const struct urxe_dev *dev, uint32_t qpn, uint32_t *slot,
		uint32_t *gen)
{
	uint64_t e = load_acquire(&dev->qp[qpn_index(qpn)]);

	if (URXE_DIR_QPN(e) != qpn || !e)
		return false;
	*slot = URXE_DIR_CTX(e);
	*gen = URXE_DIR_GEN(e);
	return true;
}
