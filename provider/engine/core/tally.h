/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counts of failures, for one line that is printed when the process exits. */
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct urxe_tally {
	_Atomic uint32_t
		failed; /* own WRs, and WRs of peers that broke own QPs */
	_Atomic uint32_t full; /* posts to a full queue */
};

extern internal struct urxe_tally urxe_tally;
