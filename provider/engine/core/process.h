/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Identity of this process, as stored in keys and shared objects. */
#pragma once

#include <stdint.h>

#include "base/compiler.h"

extern internal int32_t urxe_pid;
/* inode number of its PID namespace; 0: unknown */
extern internal uint64_t urxe_pidns;

/* Set both, at load time and in the child of a fork. */
void process_identify(void);
