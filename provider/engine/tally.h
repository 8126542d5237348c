/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Failures of this process, of which one line is printed when it ends. */
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct urxe_tally {
	_Atomic uint32_t
		failed; /* WRs of ours, and of peers that broke our QPs */
	_Atomic uint32_t full; /* posts to a full queue */
};

extern internal struct urxe_tally urxe_tally;
