/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What befalls packets on their way out, if rules of faults or the adversary
 * are about them. */
#pragma once

/* Before the first packet, once in a process. */
void fate_begin(void);
