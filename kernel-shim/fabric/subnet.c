// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the subnet manager of InfiniBand assigns: LIDs, P_Keys, and its own LID
 * (shared/subnet.h).  urxe emulates its results: all InfiniBand ports of a
 * fabric are in one subnet, which is configured when the fabric is created.
 * Port number n in the order of the devices gets LID n and the default
 * partition, and the subnet manager is at LID 1.  urxe port changes them
 * later, as an administrator does.
 *
 * Writers hold the device lock.  The order of a change: the value, the counter
 * gen, the paths (port.c), and then the event.
 */
#include <errno.h>
#include <infiniband/verbs.h>

#include "internal.h"

void subnet_init(struct urxe_dev *dev)
{
	struct urxe_subnet *s;
	uint32_t k, lid = 0;

	for (k = 0; k < dev_hcas(dev); k++) {
		s = &dev->hca[k].subnet;
		store_relaxed(&s->pkey[0], PKEY_DEFAULT);
		if (!dev->hca[k].infiniband)
			continue;
		store_relaxed(&s->lids, SUBNET_LIDS(++lid, 0));
		store_relaxed(&s->sm, 1);
	}
}

int subnet_port(const struct urxe_dev *dev, uint16_t lid)
{
	uint32_t k;

	for (k = 0; k < dev_hcas(dev); k++)
		if (dev->hca[k].infiniband &&
		    port_has_lid(&dev->hca[k].subnet, lid))
			return (int)k;
	return -1;
}

bool subnet_is_initial(const struct urxe_dev *dev)
{
	uint32_t k;

	for (k = 0; k < dev_hcas(dev); k++)
		if (load_acquire(&dev->hca[k].subnet.gen))
			return false;
	return true;
}

/* Announce a change of port k, and release the device lock. */
static void subnet_changed(struct urxe_fabric *f, uint32_t k, uint32_t event)
{
	fetch_add_seq_cst(&f->dev->hca[k].subnet.gen, 1);
	paths_update(f->dev);
	fabric_unlock(f);
	fabric_port_event(f, k, event);
}

/* Begin a change of port k: 0 with the device lock held, or -errno. */
static int subnet_change(struct urxe_fabric *f, uint32_t k)
{
	if (!f->dev->hca[k].infiniband)
		return fabric_fail(
			EOPNOTSUPP,
			URXE_DEVICE_NAME
			"%u is an Ethernet device, which has no LIDs and no P_Keys; see urxe run --link-layer",
			k);
	fabric_reap(f);
	return fabric_lock(f);
}

/* Do two ranges of LIDs have a common LID? */
static bool lids_overlap(uint32_t lid, uint32_t lmc, uint32_t other)
{
	const uint32_t base = other & 0xffff, n = 1u << (other >> 16 & LMC_MAX);

	return base && lid < base + n && base < lid + (1u << lmc);
}

/* Under the device lock: check new LIDs of port k.  0 or -errno */
static int lids_check(const struct urxe_dev *dev, uint32_t k, uint32_t lid,
		      uint32_t lmc)
{
	uint32_t j;

	if (lmc > LMC_MAX || !lid || lid + (1u << lmc) - 1 > LID_LAST ||
	    lid & ((1u << lmc) - 1))
		return fabric_fail(
			EINVAL,
			"LID %u with LMC %u is invalid: an LMC is 0 to %u, and a base LID is 1 to %u and a multiple of 2 to the power LMC",
			lid, lmc, LMC_MAX, LID_LAST);
	for (j = 0; j < dev_hcas(dev); j++)
		if (j != k &&
		    lids_overlap(lid, lmc,
				 load_relaxed(&dev->hca[j].subnet.lids)))
			return fabric_fail(
				EINVAL,
				"LID %u with LMC %u is in use: " URXE_DEVICE_NAME
				"%u has LID %u with LMC %u",
				lid, lmc, j, port_lid(&dev->hca[j].subnet),
				port_lmc(&dev->hca[j].subnet));
	return 0;
}

int subnet_set_lids(struct urxe_fabric *f, uint32_t k, uint32_t lid,
		    uint32_t lmc)
{
	int ret = subnet_change(f, k);

	if (ret)
		return ret;
	ret = lids_check(f->dev, k, lid, lmc);
	if (ret) {
		fabric_unlock(f);
		return ret;
	}
	store_seq_cst(&f->dev->hca[k].subnet.lids, SUBNET_LIDS(lid, lmc));
	subnet_changed(f, k, IBV_EVENT_LID_CHANGE);
	return 0;
}

int subnet_set_pkeys(struct urxe_fabric *f, uint32_t k, const uint16_t *pkey,
		     uint32_t n)
{
	struct urxe_subnet *s = &f->dev->hca[k].subnet;
	uint32_t i;
	int ret = subnet_change(f, k);

	if (ret)
		return ret;
	for (i = 0; i < URXE_MAX_PKEY; i++)
		store_seq_cst(&s->pkey[i], i < n ? pkey[i] : 0);
	subnet_changed(f, k, IBV_EVENT_PKEY_CHANGE);
	return 0;
}

int subnet_set_sm(struct urxe_fabric *f, uint32_t k, uint16_t lid, uint8_t sl)
{
	int ret = subnet_change(f, k);

	if (ret)
		return ret;
	store_seq_cst(&f->dev->hca[k].subnet.sm, lid | (uint32_t)sl << 16);
	subnet_changed(f, k, IBV_EVENT_SM_CHANGE);
	return 0;
}
