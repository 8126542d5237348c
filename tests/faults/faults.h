/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tests of faults share.  Each test is a process of its own. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "types.h"

/* Before the device is opened: what is to go wrong. */
static inline void fault(const char *rules)
{
	ck_ok(setenv("URXE_FAULTS", rules, 1));
}

/* How long a test looks that no event comes. */
static inline void expect_quiet(struct ibv_context *ctx)
{
	ck_assert(!fd_readable(ctx->async_fd, QUIET_MS));
}
