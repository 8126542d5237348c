// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address handles: ibv_create_ah, ibv_destroy_ah, and the check of address
 * vectors, which ibv_modify_qp uses as well.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ah.h"
#include "context.h"
#include "engine/core/log.h"
#include "pd.h"
#include "verbs.h"

bool ah_gid_is_ours(const struct urxe_dev *dev, const uint8_t gid[16])
{
	return fabric_gid_owner(dev, gid) >= 0;
}

static int ah_no_way(const char *why)
{
	return fabric_fail(EHOSTUNREACH, "%s", why);
}

/*
 * Check whether packets can be sent to the destination, which is no GID of
 * this fabric.  The socket of the wire has one address family.
 */
static int ah_check_remote(const struct urxe_context *ctx,
			   const struct ibv_global_route *g)
{
	const uint8_t *own =
		ctx->hca->gid[gid_row(ctx->hca, g->sgid_index)].raw;

	if (!ctx->has_wire)
		return ah_no_way(
			"no device of this fabric has the destination GID; start the peer in this fabric, or use urxe run --wire for another host");
	if (gid_roce(ctx->hca, g->sgid_index) != URXE_ROCE_V2)
		return ah_no_way(
			"the destination GID is of another host, which needs a source GID of type RoCE v2");
	if (!gids_fit(URXE_ROCE_V2, own, g->dgid.raw))
		return ah_no_way(
			"one of the GIDs is an IPv4 address and the other one is not");
	if (gid_is_ipv4(own) != ctx->wire_is_ipv4)
		return ah_no_way(
			ctx->wire_is_ipv4 ?
				"the GIDs are IPv6 addresses, and URXE_WIRE is an IPv4 address" :
				"the GIDs are IPv4 addresses, and URXE_WIRE is an IPv6 address");
	return 0;
}

static bool ah_has_gid(const struct urxe_hca *hca, uint32_t index)
{
	return gid_has_row(hca, index) &&
	       load_acquire(&hca->gid[gid_row(hca, index)].valid);
}

int ah_check(struct urxe_context *ctx, const struct ibv_ah_attr *attr)
{
	struct urxe_dev *dev = ctx->fabric->dev;

	if (!attr->is_global && !ctx->hca->infiniband)
		return fabric_fail(EINVAL,
				   "RoCE needs a GRH: set is_global to 1");
	if ((attr->port_num && attr->port_num != 1) || attr->sl > 15)
		return fabric_fail(
			EINVAL,
			"port_num is %u, and must be 1; sl is %u, and must be 0 to 15",
			attr->port_num, attr->sl);
	if (attr->is_global && !ah_has_gid(ctx->hca, attr->grh.sgid_index))
		return fabric_fail(
			EINVAL,
			"sgid_index %u has no GID (`urxe info` lists the GIDs)",
			attr->grh.sgid_index);
	/* a LID that no port has is an address all the same */
	if (ctx->hca->infiniband)
		return 0;
	if (mcast_is_group(attr->grh.dgid.raw) ||
	    ah_gid_is_ours(dev, attr->grh.dgid.raw))
		return 0;
	return ah_check_remote(ctx, &attr->grh);
}

/*
 * Value of ibv_ah.handle.  It only serves to detect that it was overwritten.
 */
static uint32_t ah_handle(const struct urxe_ah *ah)
{
	return (uint32_t)((uintptr_t)ah >> 4);
}

static uint32_t av_device(const struct urxe_context *ctx, const uint8_t gid[16])
{
	const int k = fabric_gid_owner(ctx->fabric->dev, gid);

	return k < 0 ? AV_NO_DEVICE : (uint32_t)k;
}

static void av_set_global(const struct urxe_context *ctx, struct urxe_av *av,
			  const struct ibv_global_route *grh)
{
	av->is_global = 1;
	memcpy(av->dgid, grh->dgid.raw, 16);
	/* the GRH has 20 bits for it; UCX sets all 32 */
	av->flow_label = grh->flow_label & 0xfffff;
	av->gid_row = gid_row(ctx->hca, grh->sgid_index) & 127;
	av->roce_v1 = gid_roce(ctx->hca, grh->sgid_index) == URXE_ROCE_V1;
	av->hop_limit = grh->hop_limit;
	av->traffic_class = grh->traffic_class;
	if (!ctx->hca->infiniband)
		av->device_or_bits = av_device(ctx, av->dgid) & AV_NO_DEVICE;
}

struct ibv_ah *urxe_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr)
{
	struct urxe_pd *pd = pd_find(ibpd);
	struct urxe_context *ctx = to_uctx(ibpd->context);
	struct urxe_ah *ah;
	int ret;

	ret = attr->port_num == 1 ?
		      ah_check(ctx, attr) :
		      fabric_fail(EINVAL, "port_num is %u, and must be 1",
				  attr->port_num);
	if (!ret && !pd)
		ret = fabric_fail(ENOENT, "the PD was destroyed");
	if (ret)
		return urxe_fail(ret, "ibv_create_ah");
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_AH);
	if (ret) {
		free(ah);
		return urxe_fail(ret, "ibv_create_ah");
	}
	ah->ctx = ctx;
	ah->upd = pd;
	ah->pd = pd->index;
	ah->dlid = attr->dlid;
	ah->av.device_or_bits = attr->src_path_bits & 127;
	ah->av.sl = attr->sl & 15;
	if (attr->is_global)
		av_set_global(ctx, &ah->av, &attr->grh);
	ah->ah.handle = ah_handle(ah);
	pd_get(pd);
	return &ah->ah;
}

int urxe_destroy_ah(struct ibv_ah *ibah)
{
	struct urxe_ah *ah = to_uah(ibah);

	if (ibah->handle != ah_handle(ah))
		return ENOENT;
	pd_put(ah->upd);
	fabric_obj_put(ah->ctx->fabric, ah->ctx->slot, URXE_OBJ_AH);
	free(ah);
	return 0;
}
