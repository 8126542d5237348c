// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Next-hop resolution, see resolve.h. */
#include <errno.h>
#include <string.h>

#include "engine/core/av.h"
#include "engine/core/log.h"
#include "resolve.h"
#include "verbs/ah.h"
#include "wire/neighbour.h"

/* The kernel queries three times, one second apart. */
#define TIMEOUT_MS 3000

/*
 * Return true if the destination is on another host; *own is the source GID
 * entry.
 */
static bool dest_is_remote(struct urxe_context *ctx,
			   const struct ibv_ah_attr *attr, struct urxe_gid *own)
{
	const struct ibv_global_route *g = &attr->grh;

	return attr->is_global && !mcast_is_group(g->dgid.raw) &&
	       !ah_gid_is_ours(ctx->fabric->dev, g->dgid.raw) &&
	       !ah_check(ctx, attr) &&
	       fabric_get_gid(ctx->hca, g->sgid_index, own);
}

int resolve_neighbour(struct urxe_context *ctx, const struct ibv_ah_attr *attr,
		      const char *what)
{
	struct urxe_gid own;
	int err;

	if (!dest_is_remote(ctx, attr, &own))
		return 0;
	err = -neighbour_wait(attr->grh.dgid.raw, own.raw, own.ifindex,
			      TIMEOUT_MS);
	/* other errors are reported when packets are sent */
	if (err != ETIMEDOUT && err != ENETUNREACH && err != EHOSTUNREACH)
		return 0;
	urxe_why("%s: cannot resolve the next hop to the destination: %s", what,
		 strerror(err));
	return err;
}
