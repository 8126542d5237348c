/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "engine/av.h"
#include "engine/context.h"

/*
 * Is this a path of this device?  -EINVAL (no GRH, which RoCE needs; another
 * port; no such source GID), -EHOSTUNREACH (no such GID in this fabric, and no
 * wire that would lead out of it); fabric_why() has the reason.
 */
int ah_check(struct urxe_context *ctx, const struct ibv_ah_attr *attr);

/* Is that an address of the device? */
bool ah_gid_is_ours(const struct urxe_dev *dev, const uint8_t gid[16]);
