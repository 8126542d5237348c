// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the subnet manager of InfiniBand assigns: LIDs, P_Keys, and its own LID
 * (shared/subnet.h).  urxe emulates its results: all InfiniBand ports of a
 * fabric are in one subnet, which is configured when the fabric is created.
 * Port number n in the order of the devices gets LID n and the partitions of
 * the cluster file, or the default one; LIDs of switches follow.  The subnet
 * manager is at the first port that has a link.  urxe port changes them later,
 * as an administrator does.  With URXE_SM=external the ports begin in
 * INIT without LIDs, and a program configures them by MADs (mad/sma.c).
 *
 * Writers hold the device lock.  The order of a change: the value, the counter
 * gen, the paths (port.c), and then the event.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

int sm_by_env(uint32_t *external)
{
	const char *env = getenv("URXE_SM");

	*external = env && !strcmp(env, "external");
	if (!env || !*env || *external || !strcmp(env, "builtin"))
		return 0;
	return fabric_fail(EINVAL, "URXE_SM=%s must be builtin or external",
			   env);
}

/* Had the port a link that was up when the fabric was created? */
static bool link_begins_up(const struct urxe_dev *dev, uint32_t k)
{
	const uint32_t none = PORT_NO_LINK | LINK_DOWN_FIRST;

	return !(load_relaxed(&dev->hca[k].down) & none);
}

uint32_t subnet_sm_home(const struct urxe_dev *dev)
{
	uint32_t k, first = dev_hcas(dev);

	for (k = 0; k < dev_hcas(dev); k++) {
		if (!dev->hca[k].infiniband)
			continue;
		if (link_begins_up(dev, k))
			return k;
		if (first == dev_hcas(dev))
			first = k;
	}
	return first % dev_hcas(dev);
}

uint32_t subnet_port_caps(const struct urxe_dev *dev,
			  const struct urxe_hca *hca)
{
	const bool sm = hca->infiniband && !dev->sm_external &&
			hca_index(dev, hca) == subnet_sm_home(dev);

	return port_caps(hca) | (sm ? URXE_PORT_SM : 0);
}

static void switch_begin(struct urxe_dev *dev, uint32_t s, uint32_t sm_lid)
{
	struct urxe_switch *sw = &dev->sw[s];
	uint32_t lid = dev_hcas(dev) + 1, port;

	/* next to the GUIDs of the devices */
	sw->guid = dev->hca[0].node_guid ^ (0x800000 + s);
	for (port = 0; port <= URXE_SWITCH_PORTS; port++)
		store_relaxed(&sw->state[port], dev->sm_external ?
							URXE_PORT_INIT :
							URXE_PORT_ACTIVE);
	if (dev->sm_external) {
		memset(sw->lft, 0xff, sizeof(sw->lft));
		return;
	}
	if (lid < URXE_SWITCH_LID)
		lid = URXE_SWITCH_LID;
	store_relaxed(&sw->subnet.pkey[0], PKEY_DEFAULT);
	store_relaxed(&sw->subnet.lids, SUBNET_LIDS(lid + s, 0));
	store_relaxed(&sw->subnet.sm, sm_lid);
}

void subnet_init(struct urxe_dev *dev)
{
	const uint32_t home = subnet_sm_home(dev);
	uint32_t k, s, sm_lid, lid = 0;

	for (k = 0; k < dev_hcas(dev) && !dev->sm_external; k++)
		if (dev->hca[k].infiniband)
			store_relaxed(&dev->hca[k].subnet.lids,
				      SUBNET_LIDS(++lid, 0));
	sm_lid = port_lid(&dev->hca[home].subnet);
	for (k = 0; k < dev_hcas(dev) && !dev->sm_external; k++)
		if (dev->hca[k].infiniband)
			store_relaxed(&dev->hca[k].subnet.sm, sm_lid);
	for (s = 0; s < dev_switches(dev); s++)
		if (dev->sw[s].infiniband)
			switch_begin(dev, s, sm_lid);
}

void subnet_node_name(const struct urxe_dev *dev, char name[64], uint32_t node)
{
	char host[32] = "", own[64];

	node_name(dev, node, own);
	if (node >= URXE_MAX_HCA || strchr(own, '/')) {
		/* as the kernel has it: the host, a space, the device */
		strcpy(name, own);
		if (strchr(name, '/'))
			*strchr(name, '/') = ' ';
		return;
	}
	gethostname(host, sizeof(host));
	host[sizeof(host) - 1] = '\0';
	snprintf(name, 64, "%s %.31s", host, own);
}

bool subnet_is_initial(const struct urxe_dev *dev)
{
	uint32_t k;

	for (k = 0; k < dev_hcas(dev); k++)
		if (load_acquire(&dev->hca[k].subnet.gen))
			return false;
	return true;
}

static struct urxe_subnet *subnet_of(struct urxe_dev *dev, uint32_t node)
{
	return node < URXE_MAX_HCA ?
		       &dev->hca[node].subnet :
		       &dev->sw[(node - URXE_MAX_HCA) % URXE_MAX_SWITCH].subnet;
}

/* Announce a change of port k, and release the device lock. */
static void subnet_changed(struct urxe_fabric *f, uint32_t k, uint32_t event)
{
	fetch_add_seq_cst(&subnet_of(f->dev, k)->gen, 1);
	fetch_add_seq_cst(&f->dev->port_changes, 1);
	paths_update_of(f->dev, k);
	fabric_unlock(f);
	if (k < URXE_MAX_HCA)
		fabric_port_event(f, k, event);
}

/* Begin a change of port k: 0 with the device lock held, or -errno. */
static int subnet_change(struct urxe_fabric *f, uint32_t k)
{
	if (k < URXE_MAX_HCA && !f->dev->hca[k].infiniband)
		return fabric_fail(
			EOPNOTSUPP,
			"%.15s is an Ethernet device, which has no LIDs and no P_Keys; see urxe run --link-layer",
			f->dev->hca[k].name);
	fabric_reap(f);
	return fabric_lock(f);
}

/* Do two ranges of LIDs have a common LID? */
static bool lids_overlap(uint32_t lid, uint32_t lmc, uint32_t other)
{
	const uint32_t base = other & 0xffff, n = 1u << (other >> 16 & LMC_MAX);

	return base && lid < base + n && base < lid + (1u << lmc);
}

/* Under the device lock: check new LIDs of a node.  0 or -errno */
static int lids_check(struct urxe_dev *dev, uint32_t node, uint32_t lid,
		      uint32_t lmc)
{
	const struct urxe_subnet *s;
	uint32_t j;

	if (lmc > LMC_MAX || !lid || lid + (1u << lmc) - 1 > LID_LAST ||
	    lid & ((1u << lmc) - 1))
		return fabric_fail(
			EINVAL,
			"LID %u with LMC %u is invalid: an LMC is 0 to %u, and a base LID is 1 to %u and a multiple of 2 to the power LMC",
			lid, lmc, LMC_MAX, LID_LAST);
	/* an external subnet manager may exchange LIDs, one after the other */
	for (j = 0; j < NODES && !dev->sm_external; j++) {
		if (j == node ||
		    (j < URXE_MAX_HCA ? j >= dev_hcas(dev) :
					j - URXE_MAX_HCA >= dev_switches(dev)))
			continue;
		s = subnet_of(dev, j);
		if (lids_overlap(lid, lmc, load_relaxed(&s->lids)))
			return fabric_fail(
				EINVAL,
				"LID %u with LMC %u is in use: another port has LID %u with LMC %u",
				lid, lmc, port_lid(s), port_lmc(s));
	}
	return 0;
}

int subnet_set_lids(struct urxe_fabric *f, uint32_t node, uint32_t lid,
		    uint32_t lmc)
{
	int ret = subnet_change(f, node);

	if (ret)
		return ret;
	ret = lids_check(f->dev, node, lid, lmc);
	if (ret) {
		fabric_unlock(f);
		return ret;
	}
	store_seq_cst(&subnet_of(f->dev, node)->lids, SUBNET_LIDS(lid, lmc));
	subnet_changed(f, node, IBV_EVENT_LID_CHANGE);
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
	store_seq_cst(&subnet_of(f->dev, k)->sm, lid | (uint32_t)sl << 16);
	subnet_changed(f, k, IBV_EVENT_SM_CHANGE);
	return 0;
}
