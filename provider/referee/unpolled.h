/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Detection of completions that were not polled, and of events that were not
 * acknowledged, when their object is destroyed or left.  The destroy verbs of
 * libibverbs and librdmacm wait until the events of the object are
 * acknowledged; a thread that would wait forever is reported before it hangs.
 */
#pragma once

#include "shadow.h"

/*
 * The QP is about to be destroyed, or it is left when its context is closed
 * or the process exits.  Report its completions in its CQs; @errors_only:
 * only those with an error.  Under referee_lock().
 */
void unpolled_check(const struct shadow_qp *q, bool errors_only);

/*
 * The object is about to be destroyed.  Wait at most 3 s (TIMEOUT_MS) until
 * its events are acknowledged.  If they are not, report that the real verb
 * will block.  Do not wait if the verb will fail because other objects use
 * this one.  Also report too many acknowledgements.  Not under
 * referee_lock(), which it takes.
 */
void unacked_wait(struct shadow *s);
/*
 * The object is left.  @at_exit: at exit of the process, else when its
 * context is closed.  Report unacknowledged events.  Under referee_lock().
 */
void unacked_check(const struct shadow *s, bool at_exit);

/* Do the same for calls of librdmacm, by way of the preload library. */
void unacked_watch_cm(void);
