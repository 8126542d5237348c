/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* This process, as keys and shared objects name it. */
#pragma once

#include <stdint.h>

#include "base/compiler.h"

extern internal int32_t urxe_pid;
extern internal uint64_t urxe_pidns; /* inode of its PID namespace; 0: unknown */

/* At start, and in the child of a fork. */
void process_identify(void);
