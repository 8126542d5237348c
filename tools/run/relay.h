/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Writing to a standard error that may be a pipe without an active reader,
 * without blocking for ever.  A caller either writes only if relay_takes()
 * is true (check.c), or writes through a relay thread (supervise.c, on a
 * timeout).  When standard error has accepted nothing for 2 s, the relay
 * drops all output that it does not accept at once.
 */
#pragma once

#include <stdbool.h>

/*
 * Return whether fd becomes writable within ms milliseconds: a write of up to
 * PIPE_BUF bytes to a pipe then does not block.  Also true on an error of fd.
 */
bool relay_takes(int fd, int ms);
/* Replace this process's standard error by the relay.  No-op if it runs. */
void relay_begin(void);
/*
 * Restore standard error, after the output is written or dropped (at most 4
 * s).  exit(3) calls it, too.
 */
void relay_end(void);
