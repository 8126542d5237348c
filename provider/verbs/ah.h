/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "engine/av.h"
#include "engine/context.h"

/*
 * Is this a path of this device?  EINVAL (no GRH, which RoCE needs; another
 * port; no such source GID), EHOSTUNREACH (no such GID in this fabric).
 */
int ah_check(struct urxe_context *ctx, const struct ibv_ah_attr *attr);
