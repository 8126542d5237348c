/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How often each rule was met, in all processes together: a file that
 * URXE_FAULT_TALLY names, made by who wants to know.  A rule has the place of
 * its number in the text.
 */
#pragma once

#include "fault.h"

#define FAULT_TALLY "URXE_FAULT_TALLY"
#define FAULT_TALLY_BYTES (FAULT_RULES * sizeof(struct fault_tally))

struct fault_tally {
	_Atomic uint64_t fitted, struck;
};

/* A file of FAULT_TALLY_BYTES, shared; NULL: it is none. */
struct fault_tally *fault_tally_map(const char *path);
