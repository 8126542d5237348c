// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ibv_attach_mcast, ibv_detach_mcast: multicast groups of UD QPs. */
#include <errno.h>

#include "engine/core/log.h"
#include "qp.h"
#include "verbs.h"

/* As the kernel does, check the MLID on InfiniBand only: RoCE has no LIDs. */
static bool mcast_fits(const struct urxe_qp *qp, const union ibv_gid *gid,
		       uint16_t lid, const char *verb)
{
	if (qp->type != IBV_QPT_UD || !mcast_is_group(gid->raw)) {
		urxe_why(
			"%s: QP 0x%x is not a UD QP, or the GID is not a multicast GID",
			verb, qp->qpn);
		return false;
	}
	if (!qp->ctx->hca->infiniband ||
	    (lid >= MLID_FIRST && lid != LID_PERMISSIVE))
		return true;
	urxe_why("%s: LID 0x%x is not a multicast LID, 0xc000 to 0xfffe", verb,
		 lid);
	return false;
}

int urxe_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid,
		      uint16_t lid)
{
	struct urxe_vqp *vqp = to_vqp(ibqp);
	int ret;

	if (!qp_is_named(ibqp))
		return ENOENT;
	if (!mcast_fits(&vqp->qp, gid, lid, "ibv_attach_mcast"))
		return EINVAL;
	ret = mcast_attach(vqp->qp.ctx->fabric, gid->raw, vqp->qp.qpn);
	if (ret > 0) /* was not attached before */
		fetch_add_relaxed(&vqp->mcast_groups, 1);
	return ret < 0 ? -ret : 0;
}

int urxe_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid,
		      uint16_t lid)
{
	struct urxe_vqp *vqp = to_vqp(ibqp);
	int ret;

	if (!qp_is_named(ibqp))
		return ENOENT;
	if (!mcast_fits(&vqp->qp, gid, lid, "ibv_detach_mcast"))
		return EINVAL;
	ret = mcast_detach(vqp->qp.ctx->fabric, gid->raw, vqp->qp.qpn);
	if (!ret)
		fetch_sub_relaxed(&vqp->mcast_groups, 1);
	return -ret;
}
