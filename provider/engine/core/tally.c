// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What this process reports when it exits. See tally.h. */
#include "tally.h"

struct urxe_tally urxe_tally;
