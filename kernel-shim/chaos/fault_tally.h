/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The tally file: how often each fault rule matched and struck, summed over
 * all processes.  urxe run creates the file (tools/run/fault.c), and passes its
 * path in URXE_FAULT_TALLY.  Each process maps it and adds to the counters
 * with relaxed atomics.  The entry of a rule is fault_rule.index.
 */
#pragma once

#include "fault.h"

#define FAULT_TALLY "URXE_FAULT_TALLY"
#define FAULT_TALLY_BYTES (FAULT_RULES * sizeof(struct fault_tally))

struct fault_tally {
	_Atomic uint64_t matched, struck;
};

/*
 * Map the file, shared and writable.  NULL: it cannot be mapped, or it is not
 * a regular file of FAULT_TALLY_BYTES.
 */
struct fault_tally *fault_tally_map(const char *path);
