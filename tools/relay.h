/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Standard error may be a pipe that nobody reads.  Who must not wait for it
 * prints when it takes something, or by way of a relay, which drops the rest
 * once standard error has taken nothing for 2 s.
 */
#pragma once

#include <stdbool.h>

/* Does a descriptor take PIPE_BUF bytes within ms? */
bool relay_takes(int fd, int ms);
/* From here on this process's standard error is the relay ... */
void relay_begin(void);
/* ... until here; all is written or dropped.  exit() ends it, too. */
void relay_end(void);
