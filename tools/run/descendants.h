/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Signals to the descendants of this process, for the timeout of urxe run
 * (supervise.c).
 */
#pragma once

/*
 * Send sig to all descendants of this process that /proc shows.  Processes
 * that are forked meanwhile may be missed.  Those whose parent has ended are
 * children of this process, if it is a subreaper (supervise.c).
 */
void descendants_signal(int sig);
