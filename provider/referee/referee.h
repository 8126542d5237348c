/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The referee: says what a program does that works here and is wrong.
 *
 * It is the outermost room before the verbs, entered if URXE_CHECK is set.  It
 * keeps a *shadow* of each object that the program makes (shadow.h) and of each
 * WR from its posting to its completion's polling (queue.h), looks at them
 * where something happens, and tells what it finds once (finding.h).  The
 * program sees what it would see without it.
 *
 * One lock guards all shadows.  It is held for moments, in which memory of the
 * program may be read, and over no verb that is passed on.  A queue has a second one for
 * who posts to it, so that its shadows stand in the order of its WRs; the verb
 * has such a lock, too.
 */
#pragma once

#include <stdbool.h>

#include "abi/pabi/pabi.h"

/*
 * If URXE_CHECK asks for it put the referee's verbs in front of those in ops,
 * once in a process.  0, or -EINVAL and the reason is said: it cannot be
 * understood.
 */
int referee_wrap(struct pabi_ops *ops);

/* The verbs that it stands in front of. */
extern struct pabi_ops referee_next;

/* What each of its files puts there. */
void referee_wrap_events(struct pabi_ops *ops);
void referee_wrap_objects(struct pabi_ops *ops);
void referee_wrap_posts(struct pabi_ops *ops);
void referee_wrap_polls(struct pabi_ops *ops);

/* ibv_wr_* and ibv_start_poll ... are in the objects themselves. */
void referee_wrap_qp_ex(struct ibv_qp *qp);
void referee_wrap_cq_ex(struct ibv_cq_ex *cq);

/* Around all that is done with shadows; errno stays as it is. */
void referee_lock(void);
void referee_unlock(void);
/*
 * At the end, which may be exit() in a signal handler, the thread that was
 * interrupted having the lock.  False: it still has after a second.
 */
bool referee_lock_at_last(void);
