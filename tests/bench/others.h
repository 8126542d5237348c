/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The same operations with other libraries: ucx_perftest of UCX and
 * fi_pingpong of libfabric, if they are installed.  They run without the
 * preload library.
 */
#pragma once

#include "rows.h"

struct others {
	int cpu[2]; /* of the client and the server; -1: any */
	int shrink;
	char missing[256]; /* messages about programs that cannot be run */
};

/* Run one round of the rows of UCX and libfabric. */
void others_run(struct others *o, enum regime g, int round);

/*
 * Set the scheduling policy of the calling process.  Return 0, or -errno if
 * that is not permitted.
 */
int regime_enter(enum regime g);
