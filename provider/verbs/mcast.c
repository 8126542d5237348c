// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "mcast.h"

bool mcast_is_group(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return gid[0] == 0xff ||
	       (!memcmp(gid, mapped, sizeof(mapped)) && gid[12] >> 4 == 0xe);
}

static struct urxe_mcast_grp *find(struct urxe_dev *dev, const uint8_t gid[16])
{
	uint32_t i;

	for (i = 0; i < URXE_MAX_MCAST_GRP; i++)
		if (atomic_load_explicit(&dev->mcast[i].count,
					 memory_order_acquire) &&
		    !memcmp(dev->mcast[i].mgid, gid, 16))
			return &dev->mcast[i];
	return NULL;
}

uint32_t mcast_members(struct urxe_dev *dev, const uint8_t gid[16],
		       uint32_t *qpn)
{
	struct urxe_mcast_grp *g = find(dev, gid);
	uint32_t i, n = 0;

	for (i = 0; g && i < URXE_MAX_MCAST_ATTACH; i++) {
		qpn[n] = atomic_load_explicit(&g->qpn[i],
					      memory_order_relaxed);
		n += qpn[n] != 0;
	}
	return n;
}

static struct urxe_mcast_grp *find_free(struct urxe_dev *dev)
{
	uint32_t i;

	for (i = 0; i < URXE_MAX_MCAST_GRP; i++)
		if (!atomic_load_explicit(&dev->mcast[i].count,
					  memory_order_relaxed))
			return &dev->mcast[i];
	return NULL;
}

/* Where qpn is in the group, or where 0 is; NULL: nowhere. */
static _Atomic uint32_t *seat(struct urxe_mcast_grp *g, uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i < URXE_MAX_MCAST_ATTACH; i++)
		if (atomic_load_explicit(&g->qpn[i], memory_order_relaxed) ==
		    qpn)
			return &g->qpn[i];
	return NULL;
}

static int attach(struct urxe_qp *qp, const union ibv_gid *gid)
{
	struct urxe_dev *dev = qp->ctx->fabric->dev;
	struct urxe_mcast_grp *g = find(dev, gid->raw);
	_Atomic uint32_t *s;

	if (g && seat(g, qp->vqp.qp.qp_num))
		return 0; /* attached already */
	if (!g) {
		g = find_free(dev);
		if (!g)
			return ENOMEM;
		memcpy(g->mgid, gid->raw, 16);
	}
	s = seat(g, 0);
	if (!s)
		return ENOMEM;
	atomic_store_explicit(s, qp->vqp.qp.qp_num, memory_order_relaxed);
	atomic_fetch_add_explicit(&g->count, 1, memory_order_release);
	qp->mcast_groups++;
	return 0;
}

static int detach(struct urxe_qp *qp, const union ibv_gid *gid)
{
	struct urxe_mcast_grp *g = find(qp->ctx->fabric->dev, gid->raw);
	_Atomic uint32_t *s = g ? seat(g, qp->vqp.qp.qp_num) : NULL;

	if (!s)
		return EINVAL;
	atomic_store_explicit(s, 0, memory_order_relaxed);
	atomic_fetch_sub_explicit(&g->count, 1, memory_order_release);
	qp->mcast_groups--;
	return 0;
}

int urxe_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid,
		      uint16_t lid)
{
	struct urxe_qp *qp = to_uqp(ibqp);
	int ret;

	(void)lid; /* RoCE has none */
	if (ibqp->qp_type != IBV_QPT_UD || !mcast_is_group(gid->raw))
		return EINVAL;
	fabric_lock(qp->ctx->fabric);
	ret = attach(qp, gid);
	fabric_unlock(qp->ctx->fabric);
	return ret;
}

int urxe_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid,
		      uint16_t lid)
{
	struct urxe_qp *qp = to_uqp(ibqp);
	int ret;

	(void)lid;
	if (ibqp->qp_type != IBV_QPT_UD || !mcast_is_group(gid->raw))
		return EINVAL;
	fabric_lock(qp->ctx->fabric);
	ret = detach(qp, gid);
	fabric_unlock(qp->ctx->fabric);
	return ret;
}
