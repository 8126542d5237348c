/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The same by others: ucx_perftest of UCX and fi_pingpong of libfabric, if they
 * are installed, without our preload library.
 */
#pragma once

#include "rows.h"

struct others {
	int cpu[2]; /* for the client, for the server; -1: any */
	int shrink;
	char missing[256]; /* what there is to say of those that are not */
};

/* One round of those rows. */
void others_run(struct others *o, enum regime g, int round);

/* Of the caller: this regime.  -errno if that is not permitted. */
int regime_enter(enum regime g);
