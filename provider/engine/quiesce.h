/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Waiting for those who may be using what was taken away; shared/guard.h. */
#pragma once

#include "context.h"
#include "shared/guard.h"

/* Wait until every requester of the fabric has left what it is in now. */
void quiesce_guards(struct urxe_fabric *f);
/*
 * The same for the pollers of ctx, who place small messages and look up QPs
 * and SRQs: each is inside its CQ's gate meanwhile.
 */
void quiesce(struct urxe_context *ctx);
/* Is QP qpn's requester executing, and alive? */
bool guard_busy(struct urxe_fabric *f, uint32_t qpn);
