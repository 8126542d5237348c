/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address handles. */
#pragma once

#include "engine/core/av.h"
#include "engine/core/context.h"

/*
 * Check that the device can reach the destination of @attr.  Return 0 or
 *
 *	-EINVAL		no GRH, which RoCE requires; port_num is not 1; sl is
 *			above 15; no such source GID
 *	-EHOSTUNREACH	no device of the fabric has the destination GID, and
 *			no wire leads to it
 *
 * fabric_why() has the reason.
 */
int ah_check(struct urxe_context *ctx, const struct ibv_ah_attr *attr);

/* Return whether @gid is a valid entry of the device's GID table. */
bool ah_gid_is_ours(const struct urxe_dev *dev, const uint8_t gid[16]);
