// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Multicast groups: the QPs attached to them (ibv_attach_mcast(3)) and, on
 * InfiniBand, the ports that have joined them at the subnet administrator.  A
 * group has an MLID while a port has joined it: MLID_FIRST + its index.
 * Switches forward its packets to the ports that have joined (IB 10.5), and
 * the ports deliver them to the QPs attached.
 *
 * Writers hold the device lock.  Readers, which deliver datagrams, take no
 * lock.  Each change increments dev->wire.groups after the table is written
 * (release), and so the socket owner of the wire rereads the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

bool mcast_is_group(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return gid[0] == 0xff ||
	       (!memcmp(gid, mapped, sizeof(mapped)) && gid[12] >> 4 == 0xe);
}

static bool mcast_is_used(const struct urxe_mcast_grp *g)
{
	return load_acquire(&g->count) || load_acquire(&g->joined);
}

static struct urxe_mcast_grp *mcast_find(struct urxe_dev *dev,
					 const uint8_t gid[16])
{
	uint32_t i;

	for (i = 0; i < URXE_MAX_MCAST_GRP; i++)
		if (mcast_is_used(&dev->mcast[i]) &&
		    !memcmp(dev->mcast[i].mgid, gid, 16))
			return &dev->mcast[i];
	return NULL;
}

uint32_t mcast_members(struct urxe_dev *dev, const uint8_t gid[16],
		       uint32_t *qpn)
{
	struct urxe_mcast_grp *g = mcast_find(dev, gid);
	uint32_t i, n = 0;

	for (i = 0; g && i < URXE_MAX_MCAST_ATTACH; i++) {
		qpn[n] = load_relaxed(&g->qpn[i]);
		n += qpn[n] != 0;
	}
	return n;
}

bool mcast_has_members(struct urxe_dev *dev, const uint8_t gid[16])
{
	const struct urxe_mcast_grp *g = mcast_find(dev, gid);

	return g && load_acquire(&g->count);
}

bool mcast_group(const struct urxe_dev *dev, uint32_t i, uint8_t gid[16])
{
	if (!load_acquire(&dev->mcast[i].count))
		return false;
	memcpy(gid, dev->mcast[i].mgid, 16);
	return true;
}

static struct urxe_mcast_grp *mcast_find_free(struct urxe_dev *dev)
{
	uint32_t i;

	for (i = 0; i < URXE_MAX_MCAST_GRP; i++)
		if (!mcast_is_used(&dev->mcast[i]))
			return &dev->mcast[i];
	return NULL;
}

/*
 * Under the device lock: the group, or a free entry with its MGID, which the
 * caller has to count.  NULL: none is free.
 */
static struct urxe_mcast_grp *mcast_get(struct urxe_dev *dev,
					const uint8_t gid[16])
{
	struct urxe_mcast_grp *g = mcast_find(dev, gid);

	if (g)
		return g;
	g = mcast_find_free(dev);
	if (g)
		memcpy(g->mgid, gid, 16);
	return g;
}

/* The entry of qpn in the group; qpn 0: a free one.  NULL: none. */
static _Atomic uint32_t *mcast_member(struct urxe_mcast_grp *g, uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i < URXE_MAX_MCAST_ATTACH; i++)
		if (load_relaxed(&g->qpn[i]) == qpn)
			return &g->qpn[i];
	return NULL;
}

/* Under the device lock. */
static int mcast_join(struct urxe_dev *dev, const uint8_t gid[16], uint32_t qpn)
{
	struct urxe_mcast_grp *g = mcast_get(dev, gid);
	_Atomic uint32_t *s;

	if (!g)
		return -ENOMEM;
	if (mcast_member(g, qpn))
		return 0; /* attached already */
	s = mcast_member(g, 0);
	if (!s)
		return -ENOMEM;
	/* counted first: members of groups without a count are not reaped */
	fetch_add_release(&g->count, 1);
	store_relaxed(s, qpn);
	fetch_add_release(&dev->wire.groups, 1);
	return 1;
}

int mcast_attach(struct urxe_fabric *f, const uint8_t gid[16], uint32_t qpn)
{
	int ret;

	do {
		ret = fabric_lock(f);
		if (ret)
			return ret;
		ret = mcast_join(f->dev, gid, qpn);
		fabric_unlock(f);
	} while (ret == -ENOMEM && fabric_reap(f));
	return ret;
}

int mcast_detach(struct urxe_fabric *f, const uint8_t gid[16], uint32_t qpn)
{
	struct urxe_mcast_grp *g;
	_Atomic uint32_t *s;
	int ret;

	ret = fabric_lock(f);
	if (ret)
		return ret;
	g = mcast_find(f->dev, gid);
	s = g ? mcast_member(g, qpn) : NULL;
	if (s) {
		store_relaxed(s, 0);
		fetch_sub_release(&g->count, 1);
		fetch_add_release(&f->dev->wire.groups, 1);
	}
	fabric_unlock(f);
	return s ? 0 : -EINVAL;
}

static struct urxe_mcast_joins *
joins_of(struct urxe_dev *dev, const struct urxe_mcast_grp *g, uint32_t k)
{
	return &hca_at(dev, k)->joins[g - dev->mcast];
}

/* Under the device lock: count a join; those by MADs count once per port. */
static void group_count(struct urxe_dev *dev, struct urxe_mcast_grp *g,
			const struct mcast_join *j)
{
	struct urxe_mcast_joins *of = joins_of(dev, g, j->device);
	bool again = false, receives = j->receives;

	if (j->by_mad) {
		again = load_relaxed(&of->by_mad);
		receives &= !load_relaxed(&of->by_mad_receives);
		store_seq_cst(&of->by_mad, 1);
		if (receives)
			store_seq_cst(&of->by_mad_receives, 1);
	}
	if (!load_relaxed(&g->joined)) {
		g->qkey = j->qkey;
		g->pkey = j->pkey;
	}
	fetch_add_relaxed(&of->receives, receives);
	fetch_add_release(&g->joined, !again);
}

int mcast_port_join(struct urxe_fabric *f, const struct mcast_join *j)
{
	struct urxe_mcast_grp *g;
	int ret;

	ret = fabric_lock(f);
	if (ret)
		return ret;
	g = mcast_get(f->dev, j->mgid);
	if (g) {
		group_count(f->dev, g, j);
		ret = (int)(MLID_FIRST + (uint32_t)(g - f->dev->mcast));
	} else {
		ret = -ENOMEM;
	}
	fabric_unlock(f);
	return ret;
}

static struct urxe_mcast_grp *mcast_of_mlid(struct urxe_dev *dev, uint16_t mlid)
{
	return &dev->mcast[(mlid - MLID_FIRST) % URXE_MAX_MCAST_GRP];
}

/* Under the device lock. */
static void group_discount(struct urxe_dev *dev, uint16_t mlid, uint32_t k,
			   bool receives)
{
	struct urxe_mcast_grp *g = mcast_of_mlid(dev, mlid);
	struct urxe_mcast_joins *of = joins_of(dev, g, k);

	if (receives && load_relaxed(&of->receives))
		fetch_sub_relaxed(&of->receives, 1);
	if (load_relaxed(&g->joined))
		fetch_sub_release(&g->joined, 1);
}

void mcast_port_leave(struct urxe_fabric *f, uint16_t mlid, uint32_t k,
		      bool receives)
{
	if (fabric_lock(f))
		return;
	group_discount(f->dev, mlid, k, receives);
	fabric_unlock(f);
}

struct mcast_counts {
	uint32_t joined[URXE_MAX_MCAST_GRP];
	uint32_t joins[URXE_MAX_HCA][URXE_MAX_MCAST_GRP];
};

struct mcast_counts *mcast_counts_new(void)
{
	return calloc(1, sizeof(struct mcast_counts));
}

void mcast_count(struct mcast_counts *c, uint16_t mlid, uint32_t k,
		 bool receives)
{
	const uint32_t i = (mlid - MLID_FIRST) % URXE_MAX_MCAST_GRP;

	c->joined[i]++;
	c->joins[k % URXE_MAX_HCA][i] += receives;
}

/* Under the device lock: set the joins of one port. */
static void joins_set(struct urxe_dev *dev, struct mcast_counts *c, uint32_t k)
{
	struct urxe_mcast_joins *of = dev->hca[k].joins;
	uint32_t i;

	for (i = 0; i < URXE_MAX_MCAST_GRP; i++, of++) {
		c->joined[i] += !!load_relaxed(&of->by_mad);
		store_relaxed(&of->receives,
			      c->joins[k][i] +
				      !!load_relaxed(&of->by_mad_receives));
	}
}

void mcast_counts_set(struct urxe_fabric *f, struct mcast_counts *c)
{
	uint32_t i, k;

	if (!fabric_lock(f)) {
		for (k = 0; k < dev_hcas(f->dev); k++)
			joins_set(f->dev, c, k);
		for (i = 0; i < URXE_MAX_MCAST_GRP; i++)
			store_release(&f->dev->mcast[i].joined, c->joined[i]);
		fabric_unlock(f);
	}
	free(c);
}

bool mcast_mad_leave(struct urxe_fabric *f, uint16_t mlid, uint32_t k)
{
	struct urxe_mcast_joins *of =
		joins_of(f->dev, mcast_of_mlid(f->dev, mlid), k);
	bool was;

	if (fabric_lock(f))
		return false;
	was = load_relaxed(&of->by_mad);
	if (was) {
		group_discount(f->dev, mlid, k,
			       load_relaxed(&of->by_mad_receives));
		store_relaxed(&of->by_mad, 0);
		store_relaxed(&of->by_mad_receives, 0);
	}
	fabric_unlock(f);
	return was;
}

uint16_t mcast_mlid(struct urxe_dev *dev, const uint8_t gid[16])
{
	const struct urxe_mcast_grp *g = mcast_find(dev, gid);

	return g && load_acquire(&g->joined) ?
		       (uint16_t)(MLID_FIRST + (uint32_t)(g - dev->mcast)) :
		       0;
}

/*
 * Does the switch forward an MLID to port k, as an external subnet manager has
 * set it?
 */
static bool mft_has(const struct urxe_dev *dev, uint32_t i, uint32_t k)
{
	const struct urxe_link_end *p = &dev->hca[k].peer;
	const uint32_t s = (uint32_t)p->node - URXE_MAX_HCA;

	return dev->sm_external && s < dev_switches(dev) &&
	       p->port <= URXE_SWITCH_PORTS &&
	       dev->sw[s].mft[p->port / 16 % URXE_MFT_POSITIONS]
			     [i / URXE_MFT_BLOCK][i % URXE_MFT_BLOCK] &
		       1u << p->port % 16;
}

bool mcast_reaches(struct urxe_dev *dev, uint16_t mlid, const uint8_t gid[16],
		   uint32_t k)
{
	const uint32_t i = (uint32_t)mlid - MLID_FIRST;

	if (i >= URXE_MAX_MCAST_GRP || k >= URXE_MAX_HCA)
		return false;
	return mft_has(dev, i, k) ||
	       (load_acquire(&dev->hca[k].joins[i].receives) &&
		mcast_mlid(dev, gid) == mlid);
}
