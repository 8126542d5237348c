/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Printing to a standard error that may be a pipe which nobody reads, without
 * waiting for ever: only when it takes something, or through a relay, which
 * drops the rest once standard error has taken nothing for 2 s.
 */
#pragma once

#include <stdbool.h>

/* Does a descriptor take PIPE_BUF bytes within ms? */
bool relay_takes(int fd, int ms);
/* From here on this process's standard error is the relay ... */
void relay_begin(void);
/* ... until here; all is written or dropped.  exit() ends it, too. */
void relay_end(void);
