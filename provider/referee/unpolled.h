/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completions, and events, that the program never took. */
#pragma once

#include "shadow.h"

/*
 * The QP, or the process, ends: what is left in its CQs, or what errors at
 * least?  Under the lock.
 */
void unpolled_look(const struct shadow_qp *q, bool errors_only);

/*
 * The object is about to be destroyed, which waits until its events are
 * acknowledged: is anybody going to?  Without a lock.
 */
void unacked_wait(struct shadow *s);
/* The process ends.  Under the lock. */
void unacked_look(const struct shadow *s, bool at_exit);

/* The same of the calls of librdmacm. */
void unacked_watch_cm(void);
