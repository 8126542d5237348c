/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Common part of the tests of fault injection (URXE_FAULTS).  Each test runs
 * in its own process.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "types.h"

/* Set the rules.  They take effect when the device is opened. */
static inline void fault(const char *rules)
{
	ck_ok(setenv("URXE_FAULTS", rules, 1));
}

/* Check that no asynchronous event arrives within QUIET_MS. */
static inline void expect_quiet(struct ibv_context *ctx)
{
	ck_assert(!fd_readable(ctx->async_fd, QUIET_MS));
}
